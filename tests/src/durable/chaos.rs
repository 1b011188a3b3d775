//! Replicas of a bot with durability on a server of their own, a platform that gives what was not
//! accepted to another one, and faults.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use botmesh_core::Message;
use botmesh_core::store::Store as _;
use botmesh_postgres_store::PostgresStore;
use botmesh_redis_store::RedisStore;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answers;
use super::examination::{Report, examine};
use super::replica::{Connection, Orders, Store};
use crate::bots::SHARED;
use crate::bots::notes::{self, Event, Life, Notebook};
use crate::bots::platform::{Balance, Platform};
use crate::process::Process;
use crate::proxy::Proxy;
use crate::random::Random;
use crate::servers::{Layout, Servers};

/// What a chat says when the faults are over.
const LAST: &str = "the end";
/// How long a handler works at most.
const HANDLING: Duration = Duration::from_millis(60);
/// How long a user thinks at most.
const PACE: Duration = Duration::from_millis(250);
const PREFIX: &str = "durable_";
/// How long a replica may take until it is connected.
const START: Duration = Duration::from_secs(60);
/// How long the bots may take to answer everything when the faults are over.
const LAST_WORDS: Duration = Duration::from_secs(120);
/// How long a replica may take to stop.
pub(super) const STOP: Duration = Duration::from_secs(15);
/// So many dead letters are read: more than there ever are.
const LETTERS: usize = 10_000;

/// What to run.
#[derive(Debug, Clone)]
pub struct DurableChaos {
    /// The program of the replicas.
    pub program: PathBuf,
    /// Chooses what users do, which replica gets it, and the faults.
    pub seed: u64,
    /// How long faults happen.
    pub time: Duration,
    /// How many replicas there are.
    pub replicas: usize,
    /// How many users chat.
    pub people: usize,
    /// On which server.
    pub layout: Layout,
    /// Whether the platform recognises a send that comes again.
    pub recognises: bool,
    /// Whether the replicas keep what they accept, so that a test can prove that this is noticed.
    pub is_durable: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What was found.
    pub report: Report,
    /// The notes; kept when a promise was broken.
    pub directory: PathBuf,
}

pub(super) struct Run {
    pub(super) chaos: DurableChaos,
    pub(super) directory: TempDir,
    pub(super) servers: Servers,
    pub(super) proxies: Vec<Proxy>,
    pub(super) platform: Platform,
    pub(super) replicas: Vec<Replica>,
    pub(super) faults: u64,
    lives: Life,
}

pub(super) struct Replica {
    pub(super) process: Process,
    pub(super) life: Life,
}

impl DurableChaos {
    /// An honest run on PostgreSQL.
    #[must_use]
    pub fn new(program: PathBuf, seed: u64, time: Duration) -> Self {
        let (layout, recognises, is_durable) = (Layout::Postgres, false, true);
        Self { program, seed, time, replicas: 3, people: 20, layout, recognises, is_durable }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the server or a replica cannot be started, or notes are broken.
    pub async fn run(self) -> Result<Outcome> {
        let mut run = Run::begin(self).await?;
        let (end, ending) = watch::channel(false);
        let mut people = JoinSet::new();
        for number in 0..run.chaos.people {
            people.spawn(chat(run.platform.clone(), run.chaos.seed, number, ending.clone()));
        }
        run.rage().await?;
        run.connected().await?;
        end.send_replace(true);
        let last_words = async { while people.join_next().await.is_some() {} };
        // Who gets no answer is found in the notes.
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
        run.finish().await
    }
}

/// One user, who says the next thing when the last one was accepted, whether it was answered or not.
async fn chat(platform: Platform, seed: u64, number: usize, ending: watch::Receiver<bool>) {
    let mut random = Random::part(seed, 1000 + number as u64);
    let key = format!("{SHARED}:u{number}");
    let mut hears = platform.listen(&key);
    let mut said = 0;
    while !*ending.borrow() {
        said += 1;
        platform.bring(SHARED, &key, &format!("message {said}"), false).await;
        tokio::time::sleep(random.between(Duration::ZERO, PACE)).await;
    }
    platform.bring(SHARED, &key, LAST, false).await;
    let last = answers::to(LAST);
    while hears.recv().await.is_some_and(|heard| heard != last) {}
}

impl Run {
    async fn begin(chaos: DurableChaos) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("botmesh-durable-").tempdir()?;
        let servers = Servers::start(directory.path(), chaos.layout, None).await?;
        let port = *servers.ports().first().context("there is no server")?;
        let mut proxies = Vec::new();
        for _ in 0..chaos.replicas {
            proxies.push(Proxy::start(port).await?);
        }
        let notes = Arc::new(Notebook::new(&directory.path().join("platform"))?);
        let platform = Platform::start(chaos.seed, Balance::Random, notes).await?;
        let (replicas, faults, lives) = (Vec::new(), 0, 0);
        let mut run =
            Self { chaos, directory, servers, proxies, platform, replicas, faults, lives };
        for index in 0..run.chaos.replicas {
            let replica = run.start(index)?;
            run.replicas.push(replica);
        }
        run.connected().await?;
        Ok(run)
    }

    pub(super) fn note(&self, event: Event) {
        self.platform.notes().note(event);
    }

    /// Where a client finds the inbox that asks at this port.
    fn store(&self, port: u16) -> Result<Store> {
        let (url, prefix) = (self.chaos.layout.url(&[port]), PREFIX.to_owned());
        Ok(match self.chaos.layout {
            Layout::Postgres => Store::Postgres { url, prefix },
            Layout::Single => Store::Redis { url, prefix },
            other => bail!("{other:?} is not for this run"),
        })
    }

    /// Starts the process of a replica, which connects as soon as it can.
    pub(super) fn start(&mut self, index: usize) -> Result<Replica> {
        self.lives += 1;
        let life = self.lives;
        let connection = Connection::Loopback {
            port: self.platform.port(),
            life,
            recognises: self.chaos.recognises,
        };
        let orders = Orders {
            replica: format!("r{index}"),
            connection,
            store: self.store(self.proxies[index].port())?,
            handling: HANDLING,
            is_durable: self.chaos.is_durable,
        };
        Ok(Replica { process: Process::start(&self.chaos.program, &orders.write()?)?, life })
    }

    /// Waits until all replicas are connected.
    async fn connected(&self) -> Result<()> {
        let deadline = Instant::now() + START;
        while self.platform.connected(SHARED) < self.chaos.replicas {
            if Instant::now() >= deadline {
                bail!("a replica does not connect");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// What was given up, by chat and number of the message.
    async fn dead_letters(&self) -> Result<Vec<(String, String)>> {
        let port = *self.servers.ports().first().context("there is no server")?;
        let (postgres, redis);
        let inbox = match self.store(port)? {
            Store::Postgres { url, prefix } => {
                postgres = PostgresStore::connect(url).prefix(prefix).await?;
                postgres.inbox()
            }
            Store::Redis { url, prefix } => {
                redis = RedisStore::connect(url).prefix(prefix).await?;
                redis.inbox()
            }
            Store::Sqlite { .. } => None,
        };
        let letters = inbox.context("the store has no inbox")?.dead_letters(None, LETTERS).await?;
        let dead = letters.into_iter().map(|letter| {
            let message: Message = serde_json::from_str(&letter.body)?;
            anyhow::Ok((
                letter.chat.as_str().to_owned(),
                message.content.body().unwrap_or_default().to_owned(),
            ))
        });
        dead.collect()
    }

    async fn finish(mut self) -> Result<Outcome> {
        let dead = if self.chaos.is_durable { self.dead_letters().await? } else { Vec::new() };
        let recognised = self.chaos.recognises.then(|| self.platform.recognised());
        for replica in &mut self.replicas {
            replica.process.finish();
        }
        let deadline = Instant::now() + STOP;
        for replica in &mut self.replicas {
            replica.process.ended(deadline).await;
        }
        self.replicas.clear();
        let noted = notes::read(&self.directory.path().join("platform"))?;
        let report = examine(&noted, &dead, recognised);
        let directory = match report.violations.is_empty() {
            true => self.directory.path().to_owned(),
            false => self.directory.keep(),
        };
        Ok(Outcome { report, directory })
    }
}
