//! A run: servers, workers, faults, and the check of what came of it.

mod harm;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use botmesh_core::ReplicaId;
use botmesh_core::coordination::CoordinatorSettings;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::backend;
use crate::checker::{Bounds, Report, check};
use crate::driver;
use crate::history::{Clock, Entry, Event, Recorder, nanos, read};
use crate::nemesis::Nemesis;
use crate::process::{Orders, Process};
use crate::proxy::Proxy;
use crate::servers::{Layout, ServerClock, Servers};
use crate::timeline::assemble;
use crate::worker::Habit;

/// What to run.
#[derive(Debug, Clone)]
pub struct Chaos {
    /// The program of the workers.
    pub program: PathBuf,
    /// Which servers there are. Faults of the network are for a single one.
    pub layout: Layout,
    /// Chooses work and faults.
    pub seed: u64,
    /// How long faults happen.
    pub time: Duration,
    /// How many workers there are.
    pub replicas: usize,
    /// The mean pause between two jobs of one of a worker's tasks.
    pub pace: Duration,
    /// How the workers behave.
    pub habit: Habit,
}

/// What came of it.
pub type Outcome = driver::Outcome<Report>;

/// The lease of most workers; some have a longer one.
const LEASE: Duration = Duration::from_secs(1);
const LONGER_LEASE: Duration = Duration::from_millis(1250);

/// Each so often there is a pause without faults, in which everybody must get on.
const STORM: Duration = Duration::from_secs(25);
const CALM: Duration = Duration::from_secs(5);

struct Run {
    chaos: Chaos,
    directory: TempDir,
    servers: Servers,
    clock: Option<ServerClock>,
    proxies: Vec<Proxy>,
    workers: Vec<Replica>,
    driver: Recorder,
    histories: u64,
    faults: u64,
}

struct Replica {
    process: Process,
    history: u64,
}

impl Chaos {
    /// An honest run on a single Redis server.
    #[must_use]
    pub fn new(program: PathBuf, seed: u64, time: Duration) -> Self {
        Self {
            program,
            layout: Layout::Single,
            seed,
            time,
            replicas: 5,
            pace: Duration::from_millis(40),
            habit: Habit::Honest,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When a server or a worker cannot be started, or a history is broken.
    pub async fn run(self) -> Result<Outcome> {
        let directory = tempfile::Builder::new().prefix("botmesh-chaos-").tempdir()?;
        let mut clock = None;
        if self.layout == Layout::Single {
            match ServerClock::new(directory.path()) {
                Ok(working) => clock = Some(working),
                Err(error) => println!("the server's clock will not jump: {error:#}"),
            }
        }
        let servers = Servers::start(directory.path(), self.layout, clock.as_ref()).await?;
        let mut proxies = Vec::new();
        for _ in 0..self.replicas {
            proxies.push(Proxy::start(servers.data[0].port()).await?);
        }
        let driver = Recorder::to_file(&directory.path().join("driver"), Clock::Machine)?;
        let (workers, histories, faults) = (Vec::new(), 0, 0);
        let chaos = self;
        Run { chaos, directory, servers, clock, proxies, workers, driver, histories, faults }
            .go()
            .await
    }
}

impl Run {
    async fn go(mut self) -> Result<Outcome> {
        self.found().await?;
        for index in 0..self.chaos.replicas {
            let replica = self.start_worker(index)?;
            self.workers.push(replica);
        }
        tokio::time::sleep(LEASE).await;
        self.rage().await?;
        tokio::time::sleep(CALM).await;
        self.finish().await;
        let report = self.check()?;
        Ok(Outcome::of(report, self.directory))
    }

    /// A backend that was just made grants nothing for a while: that is over when workers begin.
    async fn found(&self) -> Result<()> {
        let grace = self.grace();
        let settings = CoordinatorSettings::builder().lease(LONGER_LEASE).grace(grace).build()?;
        let layout = self.chaos.layout;
        let url = layout.url(&self.servers.ports());
        let founder = backend::open(layout.backend(), &url, ReplicaId::new("founder")?, settings)?;
        founder.start().await.context("the backend cannot be founded")?;
        tokio::time::sleep(grace).await;
        founder.stop().await.context("the backend cannot be founded")
    }

    fn grace(&self) -> Duration {
        LONGER_LEASE + self.servers.lag()
    }

    async fn rage(&mut self) -> Result<()> {
        let Chaos { seed, time, replicas, layout, .. } = self.chaos;
        let mut nemesis = Nemesis::new(seed, replicas, LEASE, layout, self.clock.is_some());
        let end = Instant::now() + time;
        let mut calm = Instant::now() + STORM;
        while Instant::now() < end {
            let plan = nemesis.choose();
            let latency = nemesis.latency();
            self.harm(plan, latency).await.with_context(|| plan.kind.name())?;
            tokio::time::sleep(plan.pause).await;
            if Instant::now() >= calm {
                tokio::time::sleep(CALM).await;
                calm = Instant::now() + STORM;
            }
        }
        Ok(())
    }

    fn start_worker(&mut self, index: usize) -> Result<Replica> {
        let history = self.histories;
        self.histories += 1;
        let layout = self.chaos.layout;
        let ports = match layout.is_single() {
            true => vec![self.proxies[index].port()],
            false => self.servers.ports(),
        };
        let orders = Orders {
            backend: layout.backend().to_owned(),
            url: layout.url(&ports),
            replica: format!("w{index}"),
            lease: if index % 3 == 2 { LONGER_LEASE } else { LEASE },
            grace: self.grace(),
            seed: self.chaos.seed ^ ((history + 1) << 20),
            pace: self.chaos.pace,
            habit: self.chaos.habit,
            history: self.history(history),
        };
        let process = Process::start(&self.chaos.program, &orders.write())?;
        Ok(Replica { process, history })
    }

    fn history(&self, number: u64) -> PathBuf {
        self.directory.path().join(format!("worker-{number}"))
    }

    async fn finish(&mut self) {
        for worker in &mut self.workers {
            worker.process.finish();
        }
        let deadline = Instant::now() + LONGER_LEASE * 20;
        for worker in &mut self.workers {
            worker.process.ended(deadline).await;
        }
        // Whoever is killed here has not ended, which the checker finds.
        self.workers.clear();
    }

    fn check(&self) -> Result<Report> {
        let load = |path: PathBuf| -> Result<Vec<Entry>> {
            // A worker that was killed before it had a session has no history.
            let text = if path.exists() { std::fs::read_to_string(&path)? } else { String::new() };
            read(&text).with_context(|| path.display().to_string())
        };
        let driver = load(self.directory.path().join("driver"))?;
        let numbers = 0..self.histories;
        let workers: Vec<_> =
            numbers.map(|number| load(self.history(number))).collect::<Result<_>>()?;
        Ok(check(&assemble(&driver, &workers)?, &Bounds::with_grace(LONGER_LEASE, self.grace())))
    }

    fn begin(&mut self, kind: &str, forgets: bool) -> u64 {
        self.faults += 1;
        let (number, kind) = (self.faults, kind.to_owned());
        self.driver.note(Event::Fault { number, kind, forgets });
        number
    }

    /// Sleeps, and notes by how much that took longer.
    async fn sleep(&self, time: Duration) {
        let due = self.driver.now() + nanos(time);
        tokio::time::sleep(time).await;
        let length = self.driver.now().saturating_sub(due);
        if length > nanos(Duration::from_millis(60)) {
            self.driver.note(Event::Stalled { length });
        }
    }
}
