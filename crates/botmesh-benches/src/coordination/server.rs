use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;

/// A Redis of the bench's own: on a free port, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateServer {
    pub(crate) port: u16,
    process: Child,
    _directory: TempDir,
}

impl PrivateServer {
    /// Without a file.
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(&["--appendonly", "no"])
    }

    /// With a log that is written out each second.
    pub(crate) fn start_logged() -> Result<Self> {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "everysec"])
    }

    fn start_with(arguments: &[&str]) -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--save", ""]).args(arguments);
        command.arg("--dir").arg(directory.path()).stdout(Stdio::null());
        let process = command.spawn().context("redis-server is not installed")?;
        let server = Self { port, process, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            ensure!(Instant::now() < deadline, "redis-server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A connection of the same driver that the coordinator uses.
    pub(crate) async fn connection(&self) -> Result<MultiplexedConnection> {
        Ok(redis::Client::open(self.url())?.get_multiplexed_async_connection().await?)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
