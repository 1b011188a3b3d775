//! How many messages are coordinated in each second.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use botmesh_core::coordination::Coordinator as _;
use botmesh_core::id::ChatKey;
use botmesh_postgres_store::Pooler;

use super::bare::BareClient;
use super::processor::Processor;
use super::server::PrivateServer;
use super::{CONNECTIONS, replica};
use crate::coordination::report::Report;
use crate::coordination::throughput::coordinate;
use crate::coordination::{Figure, Options, chat};
use crate::spread::{Spread, rate};

/// Messages that are under way at once.
const AT_ONCE: u64 = 64;
const BARE: &str = "two bare statements, same driver";

pub(super) async fn measure(
    server: &PrivateServer,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    let bare = BareClient::tuned(server, options.messages).await?;
    for &chats in &options.chats {
        let keys: Arc<[ChatKey]> = (0..chats).map(chat).collect::<Result<_>>()?;
        for &count in &options.replicas {
            let mut replicas = Vec::new();
            for _ in 0..count {
                replicas.push(replica(server, CONNECTIONS / count, Pooler::Absent).await?);
            }
            let mut runs: [Runs; 2] = Default::default();
            // In turn, so that whatever else the machine does slows both alike.
            for _ in 0..options.rounds {
                for (is_bare, runs) in [true, false].into_iter().zip(&mut runs) {
                    let before = Processor::read(server.process())?;
                    let took = match is_bare {
                        true => bare.run(chats, options.messages).await?,
                        false => coordinate(&replicas, &keys, options.messages, AT_ONCE).await?,
                    };
                    let spent =
                        Processor::read(server.process())?.of_each(before, options.messages);
                    runs.add(rate(options.messages, took), spent);
                }
            }
            for replica in replicas {
                replica.stop().await?;
            }
            tell(report, &format!("{chats} chats, {count} replicas"), &runs, chats > 1)?;
        }
    }
    Ok(())
}

fn tell(report: &mut Report<'_>, of: &str, runs: &[Runs; 2], has_goal: bool) -> Result<()> {
    let [bare, ours] = runs;
    for (what, unit, of_runs, goal) in [
        ("coordinated messages", "/s", (|runs| &runs.rate) as fn(&Runs) -> &Vec<f64>, ">= 0.8"),
        ("  processor of PostgreSQL for each", "us", |runs| &runs.server, ""),
        ("  processor of the replicas", "us", |runs| &runs.own, ""),
    ] {
        let median = |runs| Spread::of(of_runs(runs)).map(|spread| spread.median);
        report.add(Figure {
            what: format!("{what}, {of}"),
            ours: median(ours).context("nothing was measured")?,
            unit,
            limit: Some((BARE, median(bare).context("nothing was measured")?)),
            goal: if has_goal { goal } else { "" },
        });
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Runs {
    rate: Vec<f64>,
    server: Vec<f64>,
    own: Vec<f64>,
}

impl Runs {
    fn add(&mut self, rate: f64, [server, own]: [f64; 2]) {
        self.rate.push(rate);
        self.server.push(server);
        self.own.push(own);
    }
}
