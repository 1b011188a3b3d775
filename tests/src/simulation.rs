//! A run within one process and in virtual time, over the in-memory hub.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use botmesh_core::ReplicaId;
use botmesh_core::coordination::transition::Mutation;
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::checker::{Bounds, Report, check};
use crate::history::{Clock, Event, Recorder};
use crate::timeline::assemble;
use crate::worker::{Habit, Worker, Workload};
use botmesh_core::testing::Dice;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// Chooses work and faults.
    pub seed: u64,
    /// How many replicas work.
    pub replicas: usize,
    /// How long.
    pub time: Duration,
    /// The rule of the hub to break.
    pub mutation: Option<Mutation>,
    /// How the workers behave.
    pub habit: Habit,
}

const LEASE: Duration = Duration::from_secs(1);

struct Replica {
    coordinator: Arc<MemoryCoordinator>,
    recorder: Arc<Recorder>,
    history: usize,
    running: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

struct Run {
    simulation: Simulation,
    hub: MemoryCoordinationHub,
    clock: Clock,
    driver: Recorder,
    recorders: Vec<Arc<Recorder>>,
    faults: u64,
}

impl Simulation {
    /// An honest run.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let time = Duration::from_secs(30);
        Self { seed, replicas: 4, time, mutation: None, habit: Habit::Honest }
    }

    /// Runs it on a runtime with a paused clock, and checks it.
    ///
    /// # Errors
    /// When a replica cannot be started or a history is broken.
    pub async fn run(self) -> Result<Report> {
        let hub = MemoryCoordinationHub::new();
        if let Some(mutation) = self.mutation {
            hub.break_rule(mutation);
        }
        let clock = Clock::Virtual(Instant::now());
        let driver = Recorder::in_memory(clock);
        let (recorders, faults) = (Vec::new(), 0);
        Run { simulation: self, hub, clock, driver, recorders, faults }.go().await
    }
}

impl Run {
    async fn go(mut self) -> Result<Report> {
        let mut dice = Dice::new(self.simulation.seed, 1_000);
        let mut replicas = Vec::new();
        for index in 0..self.simulation.replicas {
            replicas.push(self.launch(index).await?);
        }
        let end = Instant::now() + self.simulation.time;
        while Instant::now() < end {
            tokio::time::sleep(dice.between(LEASE / 5, LEASE * 3)).await;
            let victim = usize::try_from(dice.below(replicas.len() as u64))?;
            self.harm(&mut dice, &mut replicas, victim).await?;
        }
        tokio::time::sleep(LEASE * 4).await;
        for replica in replicas {
            replica.stop.send_replace(true);
            replica.running.await?;
        }
        let workers: Vec<_> = self.recorders.iter().map(|recorder| recorder.take()).collect();
        let timeline = assemble(&self.driver.take(), &workers)?;
        Ok(check(&timeline, &Bounds::new(LEASE)))
    }

    async fn launch(&mut self, index: usize) -> Result<Replica> {
        let settings = CoordinatorSettings::builder().lease(LEASE).build()?;
        let id = ReplicaId::new(format!("w{index}"))?;
        let coordinator = MemoryCoordinator::builder(&self.hub).replica_id(id).settings(settings);
        let coordinator = Arc::new(coordinator.build());
        coordinator.start().await?;
        let recorder = Arc::new(Recorder::in_memory(self.clock));
        let history = self.recorders.len();
        self.recorders.push(Arc::clone(&recorder));
        let workload = Workload {
            seed: self.simulation.seed ^ ((history as u64) << 32),
            tasks: 6,
            pace: Duration::from_millis(20),
            keys: 20,
            hot: 3,
            hold: LEASE * 2,
            wait: LEASE * 12,
        };
        let shared = Arc::clone(&coordinator);
        let worker = Worker::new(shared, Arc::clone(&recorder), workload, self.simulation.habit)?;
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(worker.run(LEASE, stopping));
        Ok(Replica { coordinator, recorder, history, running, stop })
    }

    async fn harm(
        &mut self,
        dice: &mut Dice,
        replicas: &mut [Replica],
        victim: usize,
    ) -> Result<()> {
        let faults = replicas[victim].coordinator.faults().clone();
        let pause = dice.between(LEASE / 4, LEASE * 2);
        match dice.below(7) {
            0 | 1 => {
                let number = self.begin("crash", false);
                let Replica { coordinator, running, history, recorder, .. } = &replicas[victim];
                coordinator.crash();
                running.abort();
                let (at, history) = (recorder.now(), *history as u64);
                self.driver.note_at(at, Event::Killed { history });
                tokio::time::sleep(dice.between(Duration::ZERO, LEASE)).await;
                replicas[victim] = self.launch(victim).await?;
                self.end(number);
            }
            2 => {
                let number = self.begin("cut off", false);
                faults.freeze();
                tokio::time::sleep(pause).await;
                faults.thaw();
                self.end(number);
            }
            3 => {
                let number = self.begin("pushes lost", false);
                faults.drop_pushes(true);
                tokio::time::sleep(pause).await;
                faults.drop_pushes(false);
                self.end(number);
            }
            4 => {
                let number = self.begin("answers lost", false);
                faults.lose_replies(u32::try_from(dice.below(4))? + 1);
                faults.lose_requests(u32::try_from(dice.below(3))?);
                tokio::time::sleep(LEASE / 3).await;
                self.end(number);
            }
            5 => {
                let number = self.begin("clock of the hub set forward", false);
                self.hub.jump_clock(dice.between(LEASE / 20, LEASE * 3));
                tokio::time::sleep(LEASE / 3).await;
                self.end(number);
            }
            _ => {
                let wiped = dice.below(2) == 0;
                let number = self.begin(if wiped { "wiped" } else { "restarted" }, wiped);
                self.hub.restart(wiped);
                tokio::time::sleep(LEASE).await;
                self.end(number);
            }
        }
        Ok(())
    }

    fn begin(&mut self, kind: &str, forgets: bool) -> u64 {
        self.faults += 1;
        let (number, kind) = (self.faults, kind.to_owned());
        self.driver.note(Event::Fault { number, kind, forgets });
        number
    }

    fn end(&self, number: u64) {
        self.driver.note(Event::Healed { number });
    }
}
