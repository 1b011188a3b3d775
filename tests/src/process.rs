//! The process of a worker: how it is started, stopped and killed, and what it does.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use botmesh_core::ReplicaId;
use botmesh_core::coordination::CoordinatorSettings;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend;
use crate::history::{Clock, Recorder};
use crate::worker::{Habit, Worker, Workload};

/// What a worker is told.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Which coordinator.
    pub backend: String,
    /// Where its servers are.
    pub url: String,
    /// The id of the replica.
    pub replica: String,
    /// Its lease.
    pub lease: Duration,
    /// How long it lets nothing be granted after a restart.
    pub grace: Duration,
    /// Chooses its work.
    pub seed: u64,
    /// The mean pause between two jobs of a task.
    pub pace: Duration,
    /// How it behaves.
    pub habit: Habit,
    /// The file for its history.
    pub history: PathBuf,
}

impl Orders {
    /// The arguments that [`read`](Self::read) reads.
    #[must_use]
    pub fn write(&self) -> Vec<String> {
        let habit = if self.habit == Habit::Honest { "honest" } else { "ignores-guard" };
        vec![
            self.backend.clone(),
            self.url.clone(),
            self.replica.clone(),
            self.lease.as_millis().to_string(),
            self.grace.as_millis().to_string(),
            self.seed.to_string(),
            self.pace.as_micros().to_string(),
            habit.to_owned(),
            self.history.display().to_string(),
        ]
    }

    /// Reads the arguments of a worker's program.
    ///
    /// # Errors
    /// When they are not what a driver gives.
    pub fn read(arguments: &[String]) -> Result<Self> {
        let [backend, url, replica, lease, grace, seed, pace, habit, history] = arguments else {
            bail!("a worker is started by the driver, not by hand");
        };
        Ok(Self {
            backend: backend.clone(),
            url: url.clone(),
            replica: replica.clone(),
            lease: Duration::from_millis(lease.parse()?),
            grace: Duration::from_millis(grace.parse()?),
            seed: seed.parse()?,
            pace: Duration::from_micros(pace.parse()?),
            habit: if habit == "honest" { Habit::Honest } else { Habit::IgnoresGuard },
            history: history.into(),
        })
    }

    /// Does a worker's work until standard input ends.
    ///
    /// # Errors
    /// When the coordinator cannot be made, or not be started within a minute.
    pub async fn obey(self) -> Result<()> {
        let settings =
            CoordinatorSettings::builder().lease(self.lease).grace(self.grace).build()?;
        let replica = ReplicaId::new(self.replica.as_str())?;
        let coordinator = backend::open(&self.backend, &self.url, replica, settings)?;
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(async move {
            let mut byte = [0];
            while let Ok(1) = tokio::io::stdin().read(&mut byte).await {}
            stop.send_replace(true);
            // Whoever stopped it is gone, or loses patience.
            std::future::pending::<()>().await;
        });
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = coordinator.start().await {
            if Instant::now() >= deadline || *stopping.borrow() {
                return Err(error).context("the coordinator did not start");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let recorder = Arc::new(Recorder::to_file(&self.history, Clock::Machine)?);
        let workload = Workload {
            seed: self.seed,
            tasks: 12,
            pace: self.pace,
            keys: 200,
            hot: 4,
            hold: self.lease * 2,
            wait: self.lease * 14,
        };
        let worker = Worker::new(coordinator, recorder, workload, self.habit)?;
        worker.run(self.lease, stopping).await;
        Ok(())
    }
}

/// Becomes true when the process is asked to stop in order, or its driver is gone.
///
/// # Errors
/// When signals cannot be heard.
pub fn told_to_stop() -> Result<watch::Receiver<bool>> {
    let (stop, stopping) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        let mut byte = [0];
        let driver_is_gone =
            async { while let Ok(1) = tokio::io::stdin().read(&mut byte).await {} };
        tokio::select! {
            () = driver_is_gone => {}
            _ = terminate.recv() => {}
        }
        stop.send_replace(true);
        // Whoever stopped it waits, or loses patience.
        std::future::pending::<()>().await;
    });
    Ok(stopping)
}

/// A running worker.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts a program whose work ends with its standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} could not be started", program.display()))?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    /// Stops the process, or lets it go on.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let signal = if paused { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).context("the worker has ended")
    }

    /// Asks it to stop in order, as a deployment does.
    ///
    /// # Errors
    /// When it has ended.
    pub fn terminate(&self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("the worker has ended")
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }

    /// Tells it to end what it began.
    pub fn finish(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has ended. Answers whether it did.
    pub async fn ended(&mut self, deadline: Instant) -> bool {
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) => return true,
                Ok(None) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                _ => return false,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
