//! Two processes of a bot on one Redis beside a peer that locks its chats there: `cargo xtask bench
//! replicas`. It fetches the peer from the npm registry.

use anyhow::{Context as _, Result, bail};
use botmesh_benches::peer::Peers;
use botmesh_benches::replicas::{Contender, Load, Replica, Total};

const USAGE: &str = "\
usage: cargo xtask bench replicas [--messages N] [--rounds N]
";

/// Many chats, so that two messages seldom meet in one, and few of them.
const CHATS: [u64; 2] = [10_000, 10];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == Replica::FLAG
    {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // As many as the peer has.
        let runtime = builder.worker_threads(1).enable_all().build()?;
        return runtime.block_on(Replica::read(rest)?.run());
    }
    let (mut messages, mut rounds) = (20_000, 3);
    let mut arguments = arguments.into_iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--messages" => messages = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            _ => bail!("{flag} is not known\n{USAGE}"),
        }
    }
    let peers = Peers::install()?;
    println!(
        "{:<18}{:>8}{:>12}{:>8}{:>10}{:>10}{:>10}{:>10}",
        "", "chats", "handled/s", "ratio", "handled", "skipped", "refused", "lost"
    );
    for chats in CHATS {
        let load = Load { processes: 2, chats, messages, at_once: 64 };
        measure(load, rounds, &peers)?;
    }
    Ok(())
}

/// In turn, so that whatever else the machine does slows all alike.
fn measure(load: Load, rounds: usize, peers: &Peers) -> Result<()> {
    let contenders = [Contender::Ours, Contender::ChatDrop, Contender::ChatQueue];
    let mut runs: [Vec<Total>; 3] = Default::default();
    for _ in 0..rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            runs.push(contender.measure(load, peers)?);
        }
    }
    let mut ours = None;
    for (contender, runs) in contenders.iter().zip(&runs) {
        let total = Total::medians(runs)?;
        let ours = *ours.get_or_insert(total.rate);
        let share = |per_mille: f64| format!("{:.1} %", per_mille / 10.0);
        println!(
            "{:<18}{:>8}{:>12.0}{:>8.1}{:>10}{:>10}{:>10}{:>10}",
            contender.name(),
            load.chats,
            total.rate,
            ours / total.rate,
            share(total.handled),
            share(total.skipped),
            share(total.refused),
            share(total.lost)
        );
    }
    Ok(())
}
