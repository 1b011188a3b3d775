//! How many messages are coordinated in each second.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use botmesh_core::coordination::Coordinator as _;
use botmesh_core::id::ChatKey;

use super::bare::Calls;
use super::counters::Counters;
use super::server::PrivateServer;
use super::workers::coordinate;
use super::{Figure, Options, Report, chat, replica};
use crate::spread::{Spread, rate};

/// So many messages are in work at the same time.
const AT_ONCE: u64 = 256;

const BARE: &str = "a bare client, same two scripts";

pub(super) async fn measure(
    server: &PrivateServer,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    let source = replica(&server.url()).await?;
    let calls = Calls::overhear(server, &source).await?;
    let mut connection = server.connection().await?;
    for &chats in &options.chats {
        let keys: Arc<[ChatKey]> = (0..chats).map(chat).collect::<Result<_>>()?;
        for &replicas in &options.replicas {
            let mut running = Vec::new();
            for _ in 0..replicas {
                running.push(replica(&server.url()).await?);
            }
            let mut runs: [Runs; 2] = Default::default();
            // In turn, so that whatever else the machine does slows both alike.
            for _ in 0..options.rounds {
                for (bare, runs) in [true, false].into_iter().zip(&mut runs) {
                    let before = Counters::read(&mut connection).await?;
                    let took = if bare {
                        let (calls, messages) = (calls.clone(), options.messages);
                        let ahead = if chats < AT_ONCE { AT_ONCE } else { 0 };
                        tokio::task::spawn_blocking(move || calls.run(chats, messages, ahead))
                            .await??
                    } else {
                        coordinate(&running, &keys, options.messages, AT_ONCE as usize).await?
                    };
                    let used = Counters::read(&mut connection).await?.since(before);
                    runs.add(options.messages, took, used);
                }
            }
            for replica in running {
                replica.stop().await?;
            }
            tell(report, chats, replicas, runs)?;
        }
    }
    source.stop().await?;
    Ok(())
}

fn tell(report: &mut Report<'_>, chats: u64, replicas: usize, runs: [Runs; 2]) -> Result<()> {
    let [bare, ours] = runs.map(Runs::medians);
    let (bare, ours) = (bare?, ours?);
    let of = format!("{chats} chats, {replicas} replicas");
    report.add(Figure {
        what: format!("coordinated messages, {of}"),
        ours: ours.rate,
        unit: "/s",
        limit: Some((BARE, bare.rate)),
        goal: ">= 0.8",
    });
    report.add(Figure {
        what: format!("  processor of Redis for each, {of}"),
        ours: ours.processor,
        unit: "us",
        limit: Some((BARE, bare.processor)),
        goal: "",
    });
    report.add(Figure {
        what: format!("  processor of the replicas, {of}"),
        ours: ours.own_processor,
        unit: "us",
        limit: Some((BARE, bare.own_processor)),
        goal: "",
    });
    if replicas == 1 {
        report.add(Figure {
            what: format!("  round trips of each, {of}"),
            ours: ours.scripts,
            unit: "calls",
            limit: Some((BARE, bare.scripts)),
            goal: "2",
        });
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Runs {
    rate: Vec<f64>,
    processor: Vec<f64>,
    own_processor: Vec<f64>,
    scripts: Vec<f64>,
}

#[derive(Debug)]
struct Medians {
    rate: f64,
    processor: f64,
    own_processor: f64,
    scripts: f64,
}

impl Runs {
    fn add(&mut self, messages: u64, took: Duration, used: Counters) {
        let rate = rate(messages, took);
        let messages = rate * took.as_secs_f64();
        self.rate.push(rate);
        self.processor.push(used.processor / messages);
        self.own_processor.push(used.own_processor / messages);
        self.scripts.push(used.scripts / messages);
    }

    fn medians(self) -> Result<Medians> {
        let median = |runs: &[f64]| Some(Spread::of(runs)?.median);
        let medians = || {
            let (rate, processor) = (median(&self.rate)?, median(&self.processor)?);
            let own_processor = median(&self.own_processor)?;
            Some(Medians { rate, processor, own_processor, scripts: median(&self.scripts)? })
        };
        medians().context("nothing was measured")
    }
}
