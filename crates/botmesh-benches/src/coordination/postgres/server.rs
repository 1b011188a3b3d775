use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

/// Makes the data and starts the server.
const SCRIPT: &str = include_str!("../../../../../tests/support/postgres.sh");

/// A PostgreSQL of the bench's own: on a free port, gone when this is dropped. It answers before
/// its disk does (`synchronous_commit = off`).
#[derive(Debug)]
pub(crate) struct PrivateServer {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl PrivateServer {
    pub(crate) async fn start() -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(directory.path()).arg(port.to_string());
        command.args(["-c", "synchronous_commit=off", "-c", "shared_buffers=128MB"]);
        let process = command.stdin(Stdio::null()).spawn().context("there is no shell")?;
        let server = Self { port, process, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.connection().await.is_err() {
            ensure!(Instant::now() < deadline, "PostgreSQL did not start: is it installed?");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Its first process.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// A connection of the same driver that the coordinator uses.
    pub(super) async fn connection(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect(&self.url()).await?)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        // SIGQUIT: the server ends its own processes and does not wait for anything.
        let _ = Command::new("kill").args(["-QUIT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}
