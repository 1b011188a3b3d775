//! Whole bots as real processes: replicas on a Redis of their own, a platform on loopback that
//! gives the messages of scripted users to whichever replica, faults, and the check of what came
//! of it.

pub mod checker;
pub mod definition;
mod harm;
pub mod loopback;
pub mod notes;
pub mod person;
pub mod platform;
pub mod replica;
pub mod story;
mod trouble;
pub mod watched;
pub mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::driver;
use crate::fleet::{Fleet, Launcher};
use crate::process::Process;
use crate::servers::Server;
use botmesh_core::testing::Dice;
use checker::{Report, check};
use notes::{Decision, Event, Life, Notebook};
use person::Person;
use platform::{Balance, Platform};
use replica::{Mutant, Orders};
use story::assemble;
use trouble::Troubles;

/// The provider that all replicas are connected to.
pub const SHARED: &str = "shared";
/// The provider that one replica at a time is connected to.
pub const EXCLUSIVE: &str = "exclusive";

/// The lease of most replicas; every third has a longer one.
pub const LEASE: Duration = Duration::from_secs(1);
const LONGER_LEASE: Duration = Duration::from_millis(1250);

/// Each so often the other faults rest while the replicas are restarted in order one after the
/// other, every other time in another version.
const STORM: Duration = Duration::from_secs(18);
const CALM: Duration = Duration::from_secs(4);
/// How long a replica may take until it has stopped.
const STOP: Duration = Duration::from_secs(10);
/// How long the users may take for their last words.
const LAST_WORDS: Duration = Duration::from_secs(120);

/// What to run.
#[derive(Debug, Clone)]
pub struct Bots {
    /// The program of the replicas.
    pub program: PathBuf,
    /// Chooses what users say, which replica gets it, and the faults.
    pub seed: u64,
    /// How long faults happen.
    pub time: Duration,
    /// How many replicas there are.
    pub replicas: usize,
    /// How many users chat over the shared connection; there is one over the exclusive one for
    /// each five of them.
    pub people: usize,
    /// How long users think at most.
    pub pace: Duration,
    /// A rule that all replicas break.
    pub broken: Option<Mutant>,
}

/// What came of it.
pub type Outcome = driver::Outcome<Report>;

struct Run {
    bots: Bots,
    directory: TempDir,
    server: Server,
    fleet: Fleet<Recipe>,
}

/// How a replica is started.
struct Recipe {
    program: PathBuf,
    directory: PathBuf,
    broken: Option<Mutant>,
    /// The version of the next replica that starts.
    version: u32,
}

impl Launcher for Recipe {
    fn launch(
        &self,
        index: usize,
        life: Life,
        platform: u16,
        server: Option<u16>,
    ) -> Result<Process> {
        let decisions = [Decision::Notify, Decision::Restart, Decision::Function, Decision::Drop];
        let port = server.context("there is no server")?;
        let orders = Orders {
            life,
            replica: format!("r{index}"),
            url: format!("redis://127.0.0.1:{port}"),
            platform,
            version: self.version,
            lease: if index % 3 == 2 { LONGER_LEASE } else { LEASE },
            decision: decisions[index % decisions.len()],
            broken: self.broken,
            notes: notes_of(&self.directory, life),
        };
        Process::start(&self.program, &orders.write()?)
    }

    fn stop(&self) -> Duration {
        STOP
    }
}

/// Examines the notes of a run once more.
///
/// # Errors
/// When they cannot be read.
pub fn examine(directory: &Path) -> Result<Report> {
    let platform = notes::read(&directory.join("platform"))?;
    // Who was killed before it began has left nothing.
    let killed = platform.iter().filter_map(|entry| match entry.event {
        Event::Delivered { life, .. } | Event::Killed { life } => Some(life),
        _ => None,
    });
    let lives = 1..=killed.max().unwrap_or_default();
    let lives = lives.map(|life| Ok((life, notes::read(&notes_of(directory, life))?)));
    Ok(check(&assemble(&platform, lives.collect::<Result<_>>()?)))
}

fn notes_of(directory: &Path, life: Life) -> PathBuf {
    directory.join(format!("replica-{life}"))
}

impl Bots {
    /// An honest run.
    #[must_use]
    pub fn new(program: PathBuf, seed: u64, time: Duration) -> Self {
        let pace = Duration::from_millis(120);
        Self { program, seed, time, replicas: 4, people: 25, pace, broken: None }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the server or a replica cannot be started, or notes are broken.
    pub async fn run(self) -> Result<Outcome> {
        let mut run = Run::begin(self, Balance::Random).await?;
        let (end, ending) = watch::channel(false);
        let mut people = JoinSet::new();
        for number in 0..run.bots.people {
            people.spawn(run.person(SHARED, number).chat(ending.clone()));
            if number % 5 == 0 {
                people.spawn(run.person(EXCLUSIVE, number).chat(ending.clone()));
            }
        }
        run.rage().await?;
        end.send_replace(true);
        let last_words = async { while people.join_next().await.is_some() {} };
        let spoken = tokio::time::timeout(LAST_WORDS, last_words).await;
        spoken.context("the users do not come to an end")?;
        run.finish().await
    }

    /// Runs without faults: one user goes through one conversation `times` times, each message at
    /// the next replica.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn alternate(self, topic: &str, times: u32) -> Result<Outcome> {
        let run = Run::begin(self, Balance::Alternate).await?;
        run.person(SHARED, 0).repeat(topic, times).await;
        run.finish().await
    }
}

impl Run {
    async fn begin(bots: Bots, balance: Balance) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("botmesh-bots-").tempdir()?;
        let server = Server::start(directory.path()).await?;
        let notes = Arc::new(Notebook::new(&directory.path().join("platform"))?);
        let platform = Platform::start(bots.seed, balance, notes).await?;
        let recipe = Recipe {
            program: bots.program.clone(),
            directory: directory.path().to_owned(),
            broken: bots.broken,
            version: 1,
        };
        let fleet = Fleet::start(recipe, platform, Some(server.port()), bots.replicas).await?;
        Ok(Self { bots, directory, server, fleet })
    }

    fn person(&self, provider: &'static str, number: usize) -> Person {
        let part = 1000 + number as u64 * 2 + u64::from(provider == EXCLUSIVE);
        let dice = Dice::new(self.bots.seed, part);
        Person::new(&self.fleet.platform, provider, &format!("u{number}"), dice, self.bots.pace)
    }

    async fn rage(&mut self) -> Result<()> {
        let mut troubles = Troubles::new(self.bots.seed, self.bots.replicas, LEASE);
        let end = Instant::now() + self.bots.time;
        let (mut calm, mut deploys) = (Instant::now() + STORM, true);
        while Instant::now() < end {
            let (trouble, pause) = troubles.choose();
            self.suffer(trouble, &mut troubles).await.with_context(|| trouble.name())?;
            tokio::time::sleep(pause).await;
            if Instant::now() >= calm || Instant::now() >= end {
                self.fleet.connected().await?;
                tokio::time::sleep(CALM).await;
                self.roll(deploys).await?;
                deploys = !deploys;
                tokio::time::sleep(CALM).await;
                calm = Instant::now() + STORM;
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Outcome> {
        self.fleet.finish().await;
        let report = examine(self.directory.path())?;
        Ok(Outcome::of(report, self.directory))
    }
}
