//! How fast a bot answers, and what its chats take in memory: `cargo xtask bench dispatch`.

use std::process::Command;

use anyhow::{Context as _, Result, bail};
use botmesh_benches::options::{Options, USAGE};
use botmesh_benches::peer::{Measured, PEERS, Peers};
use botmesh_benches::spread::{Spread, quantile, rate};
use botmesh_benches::table::{Figures, Speed, Use};
use botmesh_benches::{Bench, Workload};
use tokio::runtime::Runtime;

/// At this number of chats the peers are measured.
const PEER_CHATS: u64 = 1_000;

fn main() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{USAGE}");
        return Ok(());
    };
    let mut figures = Figures::default();
    if options.peers {
        with_peers(&options, &mut figures.speed)?;
    } else {
        for &workload in &options.workloads {
            for &chats in &options.chats {
                let mut ours = Ours::start(workload, chats, &options)?;
                for _ in 0..options.runs {
                    ours.measure()?;
                }
                figures.speed.push(ours.end()?);
            }
        }
    }
    if options.memory {
        for &workload in &options.workloads {
            figures.memory.push(memory(workload, &options)?);
        }
    }
    if options.json {
        println!("{}", serde_json::to_string(&figures)?);
    } else {
        print!("{}", figures.table());
    }
    Ok(())
}

/// Each peer in turn with ours, so that whatever else the machine does slows all alike.
fn with_peers(options: &Options, speed: &mut Vec<Speed>) -> Result<()> {
    let peers = Peers::install()?;
    for &workload in &options.workloads {
        let like: Vec<_> = PEERS.iter().filter(|peer| peer.like == workload).collect();
        if like.is_empty() {
            continue;
        }
        let messages = (100_000 / options.shortened).max(1);
        let mut ours = Ours::start(workload, PEER_CHATS, options)?;
        let mut theirs = vec![Runs::default(); like.len()];
        for _ in 0..options.runs {
            ours.measure()?;
            for (peer, runs) in like.iter().zip(&mut theirs) {
                runs.add(peers.measure(peer, PEER_CHATS, messages)?);
            }
        }
        let ours = ours.end()?;
        let our_rate = ours.rate.median;
        speed.push(ours);
        for (peer, runs) in like.iter().zip(theirs) {
            let mut theirs = runs.speed(workload, peer.name, PEER_CHATS)?;
            theirs.ours_to_theirs = Some(our_rate / theirs.rate.median);
            speed.push(theirs);
        }
    }
    Ok(())
}

/// A bot of ours that is measured several times.
struct Ours {
    runtime: Runtime,
    bench: Bench,
    workload: Workload,
    messages: u64,
    one_by_one: u64,
    runs: Runs,
}

impl Ours {
    fn start(workload: Workload, chats: u64, options: &Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let messages = (workload.messages() / options.shortened).max(1);
        let bench = runtime.block_on(async {
            let mut bench = workload.start(chats).await?;
            // Every chat has written before, and in conversations is asked its first question.
            bench.driver.flood(chats.max(messages / 2)).await?;
            bench.idle().await;
            anyhow::Ok(bench)
        })?;
        let one_by_one = (messages / 10).min(20_000);
        Ok(Self { runtime, bench, workload, messages, one_by_one, runs: Runs::default() })
    }

    fn measure(&mut self) -> Result<()> {
        let (messages, bench) = (self.messages, &mut self.bench);
        let measured = self.runtime.block_on(async {
            let took = bench.driver.flood(messages).await?;
            bench.idle().await;
            let mut times = bench.driver.deliver(self.one_by_one, 1).await?;
            bench.idle().await;
            times.sort_unstable();
            let at = |share| quantile(&times, share).context("nothing was measured");
            anyhow::Ok(Measured { rate: rate(messages, took), p50: at(0.5)?, p99: at(0.99)? })
        })?;
        self.runs.add(measured);
        Ok(())
    }

    fn end(self) -> Result<Speed> {
        let chats = self.bench.driver.chats();
        self.runtime.block_on(self.bench.stop());
        self.runs.speed(self.workload, "botmesh", chats)
    }
}

#[derive(Debug, Clone, Default)]
struct Runs {
    rate: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Runs {
    fn add(&mut self, measured: Measured) {
        self.rate.push(measured.rate);
        self.p50.push(measured.p50);
        self.p99.push(measured.p99);
    }

    fn speed(self, workload: Workload, framework: &'static str, chats: u64) -> Result<Speed> {
        let of = |runs: &[f64]| Spread::of(runs).context("nothing was measured");
        Ok(Speed {
            workload: workload.name(),
            framework,
            chats,
            rate: of(&self.rate)?,
            p50: of(&self.p50)?,
            p99: of(&self.p99)?,
            ours_to_theirs: None,
        })
    }
}

/// Measured by a process of its own, whose allocator counts.
fn memory(workload: Workload, options: &Options) -> Result<Use> {
    let chats = options.memory_chats;
    let output = Command::new(env!("CARGO_BIN_EXE_allocations"))
        .args([workload.name(), &chats.to_string(), &chats.min(workload.messages()).to_string()])
        .output()
        .context("the program that counts allocations could not be started")?;
    if !output.status.success() {
        bail!("counting allocations failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let memory = serde_json::from_slice(&output.stdout)?;
    Ok(Use { workload: workload.name(), chats, memory })
}
