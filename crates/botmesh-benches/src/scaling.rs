//! A whole bot on one Redis: alone without coordination, and as several replicas.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use botmesh_core::Bot;
use botmesh_core::bot::{Coordination, RunningBot};
use botmesh_redis_store::RedisStore;
use futures_util::future::try_join_all;

use crate::coordination::server::PrivateServer;
use crate::spread::{Spread, quantile, rate};
use crate::{Driver, Feed, Workload};

/// How a bot is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// One process, without coordination.
    Alone,
    /// So many replicas, which coordinate.
    Replicas(usize),
}

impl Setting {
    /// All that are measured.
    pub const ALL: [Self; 4] =
        [Self::Alone, Self::Replicas(1), Self::Replicas(2), Self::Replicas(4)];

    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Alone => "no coordination".to_owned(),
            Self::Replicas(1) => "1 replica".to_owned(),
            Self::Replicas(number) => format!("{number} replicas"),
        }
    }
}

/// A bot that runs in one setting.
#[derive(Debug)]
pub struct Crowd {
    replicas: Vec<(RunningBot, Driver)>,
    runs: [Vec<f64>; 3],
}

/// What the runs came to.
#[derive(Debug)]
pub struct Measures {
    /// Messages in each second.
    pub rate: Spread,
    /// Microseconds from a delivery to its reply, with one message in the bot at a time.
    pub p50: f64,
    /// The same for 99 of 100.
    pub p99: f64,
}

/// A Redis of the bench's own.
#[derive(Debug, Clone)]
pub struct Server(Arc<PrivateServer>);

impl Server {
    /// Starts it.
    ///
    /// # Errors
    /// When `redis-server` is not installed or does not start.
    pub fn start() -> Result<Self> {
        Ok(Self(Arc::new(PrivateServer::start()?)))
    }
}

impl Crowd {
    /// Starts the bot, all of whose replicas have messages for the same chats.
    ///
    /// # Errors
    /// When a replica does not start.
    pub async fn start(
        server: &Server,
        workload: Workload,
        setting: Setting,
        chats: u64,
    ) -> Result<Self> {
        let number = match setting {
            Setting::Alone => 1,
            Setting::Replicas(number) => number,
        };
        let prefix = format!("{}-{number}-{}", workload.name(), setting == Setting::Alone);
        let mut replicas = Vec::new();
        for replica in 0..number {
            let (feed, driver) = Feed::new(chats)?;
            let store = RedisStore::connect(server.0.url()).prefix(&prefix).await?;
            let mut bot = Bot::new(feed).max_waiting_per_chat(usize::MAX);
            if setting != Setting::Alone {
                bot = bot.coordination(Coordination::new(store.coordinator().build()?));
            }
            let bot = workload.define(bot.store(store));
            let running =
                bot.start().await.map_err(|error| anyhow!("replica {replica}: {error}"))?;
            running.ready().await;
            replicas.push((running, driver));
        }
        Ok(Self { replicas, runs: Default::default() })
    }

    /// Delivers `messages` messages in all, and then `one_by_one` to one replica.
    ///
    /// # Errors
    /// When a message is not answered.
    pub async fn measure(&mut self, messages: u64, one_by_one: u64) -> Result<()> {
        let each = messages / self.replicas.len() as u64;
        let floods = self.replicas.iter_mut().map(|(_, driver)| driver.flood(each));
        let took = try_join_all(floods).await?.into_iter().max().context("there is no replica")?;
        self.idle().await;
        let (_, driver) = self.replicas.first_mut().context("there is no replica")?;
        let mut times = driver.deliver(one_by_one, 1).await?;
        times.sort_unstable();
        let at = |share| quantile(&times, share).context("nothing was measured");
        let measured = [rate(each * self.replicas.len() as u64, took), at(0.5)?, at(0.99)?];
        self.runs.iter_mut().zip(measured).for_each(|(runs, measured)| runs.push(measured));
        self.idle().await;
        Ok(())
    }

    async fn idle(&self) {
        for (running, _) in &self.replicas {
            running.idle().await;
        }
    }

    /// Stops the bot and tells what the runs came to; the first one is a warm-up.
    ///
    /// # Errors
    /// When nothing was measured.
    pub async fn end(self) -> Result<Measures> {
        for (running, _) in self.replicas {
            running.stop().await;
        }
        let [rate, p50, p99] = &self.runs;
        let of = |runs: &[f64]| Spread::of(runs.get(1..).unwrap_or_default());
        let spread = |runs| of(runs).context("nothing was measured");
        Ok(Measures { rate: spread(rate)?, p50: spread(p50)?.median, p99: spread(p99)?.median })
    }
}
