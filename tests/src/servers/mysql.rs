//! A private MariaDB server in a directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection as _, MySqlConnection};
use tokio::time::Instant;

/// Makes the data and starts the server. It says that it keeps what it confirmed, which is so as long as
/// the machine goes on.
const SCRIPT: &str = include_str!("../../support/mariadb.sh");

/// What is run at each start.
const FOUND: &str = "CREATE DATABASE IF NOT EXISTS bots;
CREATE USER IF NOT EXISTS bot@'%';
GRANT ALL PRIVILEGES ON *.* TO bot@'%';
";

/// What is run at a start without the turns of before.
const FORGET: &str = "DELETE FROM bots.chaos_coordination_space;
DELETE FROM bots.chaos_coordination_sessions;
DELETE FROM bots.chaos_coordination_turns;
";

const PATIENCE: Duration = Duration::from_secs(60);

/// One server process, or the place where one ran.
#[derive(Debug)]
pub struct Mysql {
    port: u16,
    directory: PathBuf,
    child: Option<Child>,
    forgets: bool,
}

/// Whether there is a program for servers on this machine.
#[must_use]
pub(super) fn is_installed() -> bool {
    let found = "PATH=$PATH:/usr/sbin; command -v mariadbd && command -v mariadb-install-db";
    let found = Command::new("sh").args(["-c", found]).stderr(Stdio::null()).output();
    found.is_ok_and(|found| found.status.success())
}

impl Mysql {
    /// Starts a server on a free port, in a directory below `parent`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn start(parent: &Path) -> Result<Self> {
        // Given back at once: the server needs it.
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = port.context("no port is free")?.port();
        let directory = parent.join(format!("mysql-{port}"));
        std::fs::create_dir_all(&directory)?;
        let mut server = Self { port, directory, child: None, forgets: false };
        server.launch().await?;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Starts it again after [`kill`](Self::kill), [`stop`](Self::stop) or [`wipe`](Self::wipe).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn launch(&mut self) -> Result<()> {
        let forget = if std::mem::take(&mut self.forgets) { FORGET } else { "" };
        std::fs::write(self.directory.join("first.sql"), format!("{FOUND}{forget}"))?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&self.directory).arg(self.port.to_string());
        command.arg("--max-connections=300");
        self.child = Some(command.stdin(Stdio::null()).spawn().context("there is no shell")?);
        let deadline = Instant::now() + PATIENCE;
        while self.connect().await.is_err() {
            if Instant::now() >= deadline {
                let log = std::fs::read_to_string(self.directory.join("log"));
                bail!("MariaDB on port {} does not answer: {log:?}", self.port);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills it at once. It finds its tables as they were when it starts again.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = (child.kill(), child.wait());
        }
    }

    /// Stops it as an administrator does.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let _ = (kill_process(Pid::from_child(&child), Signal::TERM), child.wait());
    }

    /// Kills it so that it knows no turn when it starts again.
    pub fn wipe(&mut self) {
        self.kill();
        self.forgets = true;
    }

    /// Stops its process, or lets it go on.
    pub fn pause(&self, paused: bool) {
        if let Some(child) = &self.child {
            let signal = if paused { Signal::STOP } else { Signal::CONT };
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    async fn connect(&self) -> Result<()> {
        let url = format!("mysql://bot@127.0.0.1:{}/bots", self.port);
        let connecting =
            tokio::time::timeout(Duration::from_secs(1), MySqlConnection::connect(&url));
        Ok(connecting.await.context("no answer")??.close().await?)
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        self.kill();
    }
}
