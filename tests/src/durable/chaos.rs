//! Replicas of a bot with durability on a server of their own, or one on a file, a platform that gives
//! what was not accepted to another one, and faults.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use botmesh_core::Message;
use botmesh_core::testing::Dice;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::answers;
use super::examination::{Report, examine};
use super::replica::{Connection, LEASE, Orders};
use super::store::{Server, Store};
use crate::bots::SHARED;
use crate::bots::notes::{self, Life, Notebook};
use crate::bots::platform::{Balance, Platform};
use crate::driver;
use crate::fleet::{Fleet, Launcher};
use crate::process::Process;
use crate::servers::{Layout, Servers};

/// What a chat says when the faults are over.
const LAST: &str = "the end";
/// How long a handler works at most.
const HANDLING: Duration = Duration::from_millis(60);
/// How long a user thinks at most.
const PACE: Duration = Duration::from_millis(250);
const PREFIX: &str = "durable_";
/// How long no user may get an answer while some wait for one, when the faults are over. A machine
/// that is slow is not said to lose anything.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a replica may take to stop.
const STOP: Duration = Duration::from_secs(15);

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
    /// The lease of a turn. A server that is slower than that loses turns all the time.
    pub lease: Duration,
    /// Where they keep what they accept.
    pub home: Home,
    /// Whether the platform recognises a send that comes again.
    pub recognises: bool,
    /// Whether the replicas keep what they accept, so that a test can prove that this is noticed.
    pub is_durable: bool,
}

/// Where the replicas keep what they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// On servers.
    Server(Layout),
    /// In a file, which one replica has.
    File,
}

impl Home {
    /// Whether this machine has what it needs.
    #[must_use]
    pub fn is_installed(self) -> bool {
        match self {
            Self::Server(layout) => layout.is_installed(),
            Self::File => true,
        }
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(layout) => layout.fmt(f),
            Self::File => f.write_str("SQLite"),
        }
    }
}

/// What came of it.
pub type Outcome = driver::Outcome<Report>;

pub(super) struct Run {
    pub(super) chaos: DurableChaos,
    directory: TempDir,
    pub(super) servers: Option<Servers>,
    pub(super) fleet: Fleet<Recipe>,
}

/// How a replica is started.
pub(super) struct Recipe {
    chaos: DurableChaos,
    file: PathBuf,
}

impl Recipe {
    /// Where a client finds the inbox that asks at this port.
    fn store(&self, port: Option<u16>) -> Result<Store> {
        let Home::Server(layout) = self.chaos.home else {
            return Ok(Store::Sqlite { path: self.file.clone() });
        };
        let server = match layout {
            Layout::Single => Server::Redis,
            Layout::Postgres => Server::Postgres,
            Layout::Mysql => Server::Mysql,
            Layout::Mongo => Server::Mongo,
            Layout::Sentinel | Layout::Cluster => bail!("{layout} is not for this run"),
        };
        let port = port.context("there is no server")?;
        Ok(Store::Shared { server, url: layout.url(&[port]), prefix: PREFIX.to_owned() })
    }
}

impl Launcher for Recipe {
    fn launch(
        &self,
        index: usize,
        life: Life,
        platform: u16,
        server: Option<u16>,
    ) -> Result<Process> {
        let recognises = self.chaos.recognises;
        let orders = Orders {
            replica: format!("r{index}"),
            connection: Connection::Loopback { port: platform, life, recognises },
            store: self.store(server)?,
            lease: self.chaos.lease,
            handling: HANDLING,
            is_durable: self.chaos.is_durable,
            dies_at: None,
        };
        Process::start(&self.chaos.program, &orders.write()?)
    }

    fn stop(&self) -> Duration {
        STOP
    }
}

impl DurableChaos {
    /// An honest run on PostgreSQL.
    #[must_use]
    pub fn new(program: PathBuf, seed: u64, time: Duration) -> Self {
        let (replicas, people, lease) = (3, 20, LEASE);
        let (home, recognises, is_durable) = (Home::Server(Layout::Postgres), false, true);
        Self { program, seed, time, replicas, people, lease, home, recognises, is_durable }
    }

    /// How many replicas there are: a file has one.
    #[must_use]
    pub fn size(&self) -> usize {
        match self.home {
            Home::Server(_) => self.replicas,
            Home::File => 1,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the server or a replica cannot be started, or notes are broken.
    pub async fn run(self) -> Result<Outcome> {
        let mut run = Run::begin(self).await?;
        let (end, ending) = watch::channel(false);
        let mut people = JoinSet::new();
        let (heard, mut hearing) = watch::channel(());
        for number in 0..run.chaos.people {
            let platform = run.fleet.platform.clone();
            people.spawn(chat(platform, run.chaos.seed, number, ending.clone(), heard.clone()));
        }
        run.rage().await?;
        run.fleet.connected().await?;
        end.send_replace(true);
        // Who gets no answer is found in the notes.
        loop {
            tokio::select! {
                biased;
                spoken = people.join_next() => if spoken.is_none() { break },
                _ = hearing.changed() => {}
                () = tokio::time::sleep(SILENCE) => break,
            }
        }
        run.finish().await
    }
}

/// One user, who says the next thing when the last one was accepted, whether it was answered or not.
async fn chat(
    platform: Platform,
    seed: u64,
    number: usize,
    ending: watch::Receiver<bool>,
    heard: watch::Sender<()>,
) {
    let mut dice = Dice::new(seed, 1000 + number as u64);
    let key = format!("{SHARED}:u{number}");
    let mut hears = platform.listen(&key);
    let mut said = 0;
    while !*ending.borrow() {
        said += 1;
        platform.bring(SHARED, &key, &format!("message {said}"), false).await;
        tokio::time::sleep(dice.between(Duration::ZERO, PACE)).await;
    }
    platform.bring(SHARED, &key, LAST, false).await;
    let last = answers::to(LAST);
    while hears.recv().await.is_some_and(|words| words != last) {
        heard.send_replace(());
    }
}

impl Run {
    async fn begin(chaos: DurableChaos) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("botmesh-durable-").tempdir()?;
        let servers = match chaos.home {
            Home::Server(layout) => Some(Servers::start(directory.path(), layout, None).await?),
            Home::File => None,
        };
        let notes = Arc::new(Notebook::new(&directory.path().join("platform"))?);
        let platform = Platform::start(chaos.seed, Balance::Random, notes).await?;
        let recipe = Recipe { chaos: chaos.clone(), file: directory.path().join("bot.db") };
        let port = servers.as_ref().and_then(|servers| servers.ports().first().copied());
        let fleet = Fleet::start(recipe, platform, port, chaos.size()).await?;
        Ok(Self { chaos, directory, servers, fleet })
    }

    /// What was given up, by chat and number of the message.
    async fn dead_letters(&self) -> Result<Vec<(String, String)>> {
        let port = self.servers.as_ref().and_then(|servers| servers.ports().first().copied());
        let letters = self.fleet.launcher.store(port)?.dead_letters().await?;
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
        let recognised = self.chaos.recognises.then(|| self.fleet.platform.recognised());
        self.fleet.finish().await;
        let noted = notes::read(&self.directory.path().join("platform"))?;
        let dead = match self.chaos.is_durable {
            true => self.dead_letters().await?,
            false => Vec::new(),
        };
        let report = examine(&noted, &dead, recognised, self.chaos.lease);
        Ok(Outcome::of(report, self.directory))
    }
}
