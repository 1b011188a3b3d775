//! How many messages are coordinated in each second, in turn with a client that runs two bare
//! statements for each.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};
use botmesh_core::id::ChatKey;

use super::fleet::Fleet;
use super::processor::Processor;
use super::report::Report;
use super::workers::{BareClient, Worker, coordinate};
use super::{Figure, Options, chat};
use crate::spread::{Spread, rate};

/// Messages that are under way at once.
pub(super) const AT_ONCE: usize = 64;

/// Replicas and what bounds them.
pub(super) struct Contest<'a, F, W> {
    pub(super) fleet: &'a F,
    /// Connections of all replicas together.
    pub(super) connections: usize,
    pub(super) bare: &'a BareClient<W>,
    /// What the limit is called.
    pub(super) limit: &'static str,
    /// Of the rate, where chats do not wait for each other all the time.
    pub(super) goal: &'static str,
    /// The server's name and first process, if it is this machine's.
    pub(super) server: Option<(&'static str, u32)>,
}

impl<F: Fleet, W: Worker> Contest<'_, F, W> {
    pub(super) async fn measure(&self, options: &Options, report: &mut Report<'_>) -> Result<()> {
        for &chats in &options.chats {
            let keys: Arc<[ChatKey]> = (0..chats).map(chat).collect::<Result<_>>()?;
            for &count in &options.replicas {
                let runs = self.run(&keys, count, options).await?;
                self.tell(report, &format!("{chats} chats, {count} replicas"), &runs, chats > 1)?;
            }
        }
        Ok(())
    }

    /// The runs of the bare client, and those of so many replicas.
    async fn run(
        &self,
        keys: &Arc<[ChatKey]>,
        count: usize,
        options: &Options,
    ) -> Result<[Runs; 2]> {
        let mut replicas = Vec::new();
        for _ in 0..count {
            let settings = CoordinatorSettings::default();
            replicas.push(self.fleet.ready(settings, self.connections / count).await?);
        }
        // So that all rows are there, on both sides.
        let once = options.messages.min(keys.len() as u64);
        self.bare.run(keys, once).await?;
        coordinate(&replicas, keys, once, AT_ONCE).await?;
        let mut runs: [Runs; 2] = Default::default();
        // In turn, so that whatever else the machine does slows both alike.
        for _ in 0..options.rounds {
            for (is_bare, runs) in [true, false].into_iter().zip(&mut runs) {
                let before = self.processor()?;
                let took = match is_bare {
                    true => self.bare.run(keys, options.messages).await?,
                    false => coordinate(&replicas, keys, options.messages, AT_ONCE).await?,
                };
                let spent = self.processor()?.of_each(before, options.messages);
                runs.add(rate(options.messages, took), spent);
            }
        }
        for replica in replicas {
            replica.stop().await?;
        }
        Ok(runs)
    }

    fn processor(&self) -> Result<Processor> {
        Processor::read(self.server.map(|(_, process)| process))
    }

    fn tell(
        &self,
        report: &mut Report<'_>,
        of: &str,
        runs: &[Runs; 2],
        has_goal: bool,
    ) -> Result<()> {
        let [bare, ours] = runs;
        let median = |runs: &[f64]| Spread::of(runs).map(|spread| spread.median);
        let mut add = |what: &str, unit, of_runs: fn(&Runs) -> &Vec<f64>, goal| {
            let limit = median(of_runs(bare)).context("nothing was measured")?;
            report.add(Figure {
                what: format!("{what}, {of}"),
                ours: median(of_runs(ours)).context("nothing was measured")?,
                unit,
                limit: Some((self.limit, limit)),
                goal,
            });
            anyhow::Ok(())
        };
        let goal = if has_goal { self.goal } else { "" };
        add("coordinated messages", "/s", |runs| &runs.rate, goal)?;
        if let Some((name, _)) = self.server {
            add(&format!("  processor of {name} for each"), "us", |runs| &runs.server, "")?;
        }
        add("  processor of the replicas", "us", |runs| &runs.own, "")
    }
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
