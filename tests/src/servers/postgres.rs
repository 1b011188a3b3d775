//! A private PostgreSQL server in a directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::time::Instant;

/// Makes the data and starts the server.
const SCRIPT: &str = include_str!("../../support/postgres.sh");

const PATIENCE: Duration = Duration::from_secs(60);

/// One server process, or the place where one ran.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    directory: PathBuf,
    child: Option<Child>,
}

/// Whether there is a program for servers on this machine.
#[must_use]
pub(super) fn is_installed() -> bool {
    let found = "command -v initdb || ls /usr/lib/postgresql/*/bin/initdb";
    let found = Command::new("sh").args(["-c", found]).stderr(Stdio::null()).output();
    found.is_ok_and(|found| found.status.success())
}

impl Postgres {
    /// Starts a server on a free port, in a directory below `parent`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn start(parent: &Path) -> Result<Self> {
        // Given back at once: the server needs it.
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = port.context("no port is free")?.port();
        let directory = parent.join(format!("postgres-{port}"));
        std::fs::create_dir_all(&directory)?;
        let mut server = Self { port, directory, child: None };
        server.launch().await?;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`kill`](Self::kill) or [`stop`](Self::stop).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn launch(&mut self) -> Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&self.directory).arg(self.port.to_string());
        self.child = Some(command.stdin(Stdio::null()).spawn().context("there is no shell")?);
        let deadline = Instant::now() + PATIENCE;
        while self.connect().await.is_err() {
            if Instant::now() >= deadline {
                bail!("PostgreSQL on port {} does not answer", self.port);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills all its processes at once. It finds the tables of turns empty when it starts again.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Stops it as an administrator does: it keeps all its tables.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = (kill_process(Pid::from_child(&child), Signal::INT), child.wait());
    }

    /// Stops its processes, or lets them go on.
    pub fn pause(&self, paused: bool) {
        self.signal(if paused { Signal::STOP } else { Signal::CONT });
    }

    /// Ends the connections that get wake-ups.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn break_pushes(&self) -> Result<()> {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name LIKE '% listens'";
        self.connect().await?.execute(cut).await?;
        Ok(())
    }

    async fn connect(&self) -> Result<PgConnection> {
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port);
        let connected = tokio::time::timeout(Duration::from_secs(1), PgConnection::connect(&url));
        Ok(connected.await.context("no answer")??)
    }

    /// Signals its first process and those of the connections.
    fn signal(&self, signal: Signal) {
        let Some(child) = &self.child else { return };
        let first = child.id();
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
        for process in std::iter::once(Pid::from_child(child)).chain(children) {
            // One that has ended meanwhile is no failure.
            let _ = kill_process(process, signal);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}
