use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sqlx::{Connection as _, MySqlConnection};
use tempfile::TempDir;

/// Makes the data and starts the server.
const SCRIPT: &str = include_str!("../../../../../tests/support/mariadb.sh");

/// Run at its start.
const FIRST: &str = "CREATE DATABASE IF NOT EXISTS bots;
CREATE USER IF NOT EXISTS bot@'%';
GRANT ALL PRIVILEGES ON *.* TO bot@'%';
";

/// A MariaDB of the bench's own: on a free port, gone when this is dropped. It answers before its
/// disk does.
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
        std::fs::write(directory.path().join("first.sql"), FIRST)?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(directory.path()).arg(port.to_string());
        command.args(["--max-connections=300", "--innodb-buffer-pool-size=128M"]);
        let process = command.stdin(Stdio::null()).spawn().context("there is no shell")?;
        let server = Self { port, process, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.connection().await.is_err() {
            ensure!(Instant::now() < deadline, "MariaDB did not start: is it installed?");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("mysql://bot@127.0.0.1:{}/bots", self.port)
    }

    /// Its process.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    /// A connection of the same driver that the coordinator uses, as another user than that.
    pub(super) async fn connection(&self) -> Result<MySqlConnection> {
        let url = format!("mysql://root@127.0.0.1:{}/bots", self.port);
        Ok(MySqlConnection::connect(&url).await?)
    }

    /// How many connections replicas have.
    pub(super) async fn connections(&self) -> Result<i64> {
        const OPEN: &str = "SELECT count(*) FROM information_schema.processlist WHERE user = 'bot'";
        let mut connection = self.connection().await?;
        let open = sqlx::query_scalar(OPEN).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(open)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
