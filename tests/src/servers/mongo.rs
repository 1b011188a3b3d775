//! A private server of what stands in for MongoDB, in a directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::options::ClientOptions;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

/// Where `cargo xtask services` tells its program.
const PROGRAM: &str = "BOTMESH_TEST_MONGO_PROGRAM";

/// One server process, or the place where one ran.
#[derive(Debug)]
pub struct Mongo {
    port: u16,
    directory: PathBuf,
    child: Option<Child>,
}

/// Whether there is a program for servers on this machine.
#[must_use]
pub(super) fn is_installed() -> bool {
    std::env::var_os(PROGRAM).is_some_and(|program| Path::new(&program).is_file())
}

impl Mongo {
    /// Starts a server on a free port, in a directory below `parent`.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn start(parent: &Path) -> Result<Self> {
        // Given back at once: the server needs it.
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let port = port.context("no port is free")?.port();
        let directory = parent.join(format!("mongo-{port}"));
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

    /// Starts it again after [`kill`](Self::kill).
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub async fn launch(&mut self) -> Result<()> {
        let program = std::env::var_os(PROGRAM).with_context(|| {
            format!(
                "{PROGRAM} is not set: `cargo xtask services up` installs the program and tells it"
            )
        })?;
        let log = std::fs::File::create(self.directory.join("log"))?;
        let mut command = Command::new(program);
        command.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        // What it confirms must survive its end, as with MongoDB.
        command.args(["--sync-on-commit", "--enable-test-commands", "--storage-path"]);
        command.arg(self.directory.join("data")).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn().context("it cannot be started")?);
        let deadline = Instant::now() + PATIENCE;
        while self.run(doc! { "ping": 1 }).await.is_err() {
            if Instant::now() >= deadline {
                bail!("the stand-in for MongoDB on port {} does not answer", self.port);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Kills it at once. It keeps what it has confirmed.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = (child.kill(), child.wait());
        }
    }

    /// Removes its data, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn wipe(&self) -> Result<()> {
        std::fs::remove_dir_all(self.directory.join("data")).context("data cannot be removed")
    }

    /// Stops its process, or lets it go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self, paused: bool) -> Result<()> {
        let child = self.child.as_ref().context("the server does not run")?;
        let signal = if paused { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(child), signal).context("it cannot be signalled")
    }

    /// Ends the connections that get wake-ups: those on which the next answers are awaited.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn break_pushes(&self) -> Result<()> {
        let data = doc! { "failCommands": ["getMore"], "closeConnection": true };
        let mode = doc! { "times": 3 };
        self.run(doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data }).await
    }

    async fn run(&self, command: Document) -> Result<()> {
        let url = format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port);
        let mut options = ClientOptions::parse(url).await?;
        options.server_selection_timeout = Some(Duration::from_secs(1));
        let client = Client::with_options(options)?;
        let admin = client.database("admin");
        let running = admin.run_command(command).into_future();
        let ran = tokio::time::timeout(Duration::from_secs(2), running).await;
        client.shutdown().immediate(true).await;
        ran.context("no answer")??;
        Ok(())
    }
}

impl Drop for Mongo {
    fn drop(&mut self) {
        self.kill();
    }
}
