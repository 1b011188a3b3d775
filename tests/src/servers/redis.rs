//! A private Redis server in a directory of its own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::ServerClock;
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

const PROGRAM: &str = "redis-server";
/// The same program under another name: it becomes the server when it is called so.
const CHECKER: &str = "redis-check-rdb";
const PATIENCE: Duration = Duration::from_secs(20);
/// Keeps its data over a kill, but for the last second.
const LOGGED: &[&str] = &["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
/// The nodes of a cluster talk to each other on a port that is higher by ten thousand.
const HIGHEST_PORT: u16 = 55_000;

/// One server process, or the place where one ran.
#[derive(Debug)]
pub struct Server {
    port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, OsString)>,
    child: Option<Child>,
}

/// Whether there is a program for servers on this machine.
#[must_use]
pub fn is_installed() -> bool {
    program().is_some()
}

fn program() -> Option<Command> {
    let call = |name: &str| {
        let mut command = Command::new(name);
        command.arg0(PROGRAM).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let works = |name: &&str| {
        let version = call(name).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    [PROGRAM, CHECKER].into_iter().find(works).map(call)
}

/// A port that nobody listens on.
///
/// # Errors
/// When there is none.
fn free_port() -> Result<u16> {
    let mut taken = Vec::new();
    loop {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("no port is free")?;
        let port = listener.local_addr()?.port();
        if port < HIGHEST_PORT {
            return Ok(port);
        }
        // Kept until one is found, so that the system offers another one each time.
        taken.push(listener);
    }
}

impl Server {
    /// Starts a server that writes a log of its data, on a free port, in a directory below `parent`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn start(parent: &Path) -> Result<Self> {
        Self::start_with(parent, LOGGED).await
    }

    /// As [`start`](Self::start), with a clock that can be set.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_under(parent: &Path, clock: &ServerClock) -> Result<Self> {
        Self::launched(parent, LOGGED, clock.environment()).await
    }

    /// Starts a server with these arguments besides the port.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn start_with(parent: &Path, arguments: &[&str]) -> Result<Self> {
        Self::launched(parent, arguments, Vec::new()).await
    }

    async fn launched(
        parent: &Path,
        arguments: &[&str],
        environment: Vec<(String, OsString)>,
    ) -> Result<Self> {
        let port = free_port()?;
        let directory = parent.join(format!("redis-{port}"));
        std::fs::create_dir_all(&directory)?;
        let mut words: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let common = ["--port", &port.to_string(), "--bind", "127.0.0.1"];
        words.extend(common.iter().map(|&word| word.to_owned()));
        let mut server = Self { port, directory, arguments: words, environment, child: None };
        server.launch().await?;
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts it again after [`kill`](Self::kill).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn launch(&mut self) -> Result<()> {
        let log = self.directory.join("log");
        let log = std::fs::File::options().create(true).append(true).open(log)?;
        let mut program = program().context("redis-server is absent: install it")?;
        program
            .args(&self.arguments)
            .envs(self.environment.clone())
            .current_dir(&self.directory)
            .stdout(log);
        let child = program.spawn().context("redis-server could not be started")?;
        self.child = Some(child);
        let deadline = Instant::now() + PATIENCE;
        while !self.ask("PING").await.is_ok_and(|answer| answer.starts_with("+PONG")) {
            if Instant::now() >= deadline {
                bail!("{PROGRAM} on port {} does not answer", self.port);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = (child.kill(), child.wait());
        }
    }

    /// Removes its data while it does not run.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn wipe(&self) -> Result<()> {
        let data = self.directory.join("appendonlydir");
        if data.exists() {
            std::fs::remove_dir_all(data)?;
        }
        Ok(())
    }

    /// Stops its process, or lets it go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let child = self.child.as_ref().context("the server does not run")?;
        kill_process(Pid::from_child(child), if paused { Signal::STOP } else { Signal::CONT })?;
        Ok(())
    }

    /// Sends one command and answers what comes back first.
    ///
    /// # Errors
    /// When it does not answer within a second.
    pub async fn ask(&self, command: &str) -> Result<String> {
        ask(self.port, command).await
    }
}

/// Sends one command to a server on a port of this machine.
///
/// # Errors
/// When it does not answer within a second.
pub async fn ask(port: u16, command: &str) -> Result<String> {
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        let mut answer = vec![0; 65_536];
        let length = stream.read(&mut answer).await?;
        answer.truncate(length);
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(Duration::from_secs(1), asked).await.context("no answer")?
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
