//! What coordination costs a whole bot, and what more replicas bring: `cargo xtask bench scaling`.

use anyhow::{Context as _, Result, bail};
use botmesh_benches::Workload;
use botmesh_benches::scaling::{Crowd, Server, Setting};

const USAGE: &str = "\
usage: cargo xtask bench scaling [OPTION]...

  --quick       one short run
  --runs N      how often each is measured (3)
  --chats N     for how many chats (1000)
";

const WORKLOADS: [Workload; 2] = [Workload::Handler, Workload::PersistentFlow];

fn main() -> Result<()> {
    let (mut runs, mut chats, mut shortened) = (3, 1_000, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
            value.parse::<u64>().with_context(|| format!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--bench" => {}
            "--quick" => (runs, shortened) = (1, 10),
            "--runs" => runs = number()?,
            "--chats" => chats = number()?,
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(());
            }
            other => bail!("the bench does not know {other:?}\n{USAGE}"),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(runs.max(1), chats.max(1), shortened))
}

async fn measure(runs: u64, chats: u64, shortened: u64) -> Result<()> {
    let server = Server::start()?;
    println!(
        "{:<18}{:<18}{:>26}{:>8}{:>10}{:>10}",
        "workload", "setting", "messages/s", "ratio", "p50 us", "p99 us"
    );
    for workload in WORKLOADS {
        let mut crowds = Vec::new();
        for setting in Setting::ALL {
            crowds.push((setting, Crowd::start(&server, workload, setting, chats).await?));
        }
        // In turn, so that whatever else the machine does slows all alike. The first is a warm-up.
        for _ in 0..=runs {
            for (_, crowd) in &mut crowds {
                crowd.measure(20_000 / shortened, 1_000 / shortened).await?;
            }
        }
        let mut alone = None;
        for (setting, crowd) in crowds {
            let measures = crowd.end().await?;
            let rate = measures.rate;
            let alone = *alone.get_or_insert(rate.median);
            println!(
                "{:<18}{:<18}{:>26}{:>8.2}{:>10.0}{:>10.0}",
                workload.name(),
                setting.name(),
                rate,
                rate.median / alone,
                measures.p50,
                measures.p99
            );
        }
    }
    Ok(())
}
