//! The servers of one run: a single one, or a master with replicas that sentinels watch.

mod redis;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use crate::backend::MASTER;
pub use redis::{Server, ask, is_installed};

/// All servers of a run.
#[derive(Debug)]
pub struct Servers {
    /// Those with data; the first is the master of the beginning.
    pub data: Vec<Server>,
    sentinels: Vec<Server>,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Servers {
    /// One server.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn single(directory: &Path) -> Result<Self> {
        Ok(Self { data: vec![Server::start(directory).await?], sentinels: Vec::new() })
    }

    /// Three servers and three sentinels.
    ///
    /// # Errors
    /// When they do not start or do not find each other.
    pub async fn watched(directory: &Path) -> Result<Self> {
        let mut data = vec![Server::start(directory).await?];
        let master = data[0].port().to_string();
        for _ in 0..2 {
            let stored = ["--save", "", "--appendonly", "yes", "--repl-diskless-sync-delay", "0"];
            let follow = [stored.as_slice(), &["--replicaof", "127.0.0.1", &master]].concat();
            data.push(Server::start_with(directory, &follow).await?);
        }
        let mut sentinels = Vec::new();
        for number in 0..3 {
            let file = directory.join(format!("sentinel-{number}.conf"));
            let text = format!(
                "sentinel monitor {MASTER} 127.0.0.1 {master} 2\n\
                 sentinel down-after-milliseconds {MASTER} 1000\n\
                 sentinel failover-timeout {MASTER} 4000\n"
            );
            std::fs::write(&file, text)?;
            let file = file.display().to_string();
            sentinels.push(Server::start_with(directory, &[&file, "--sentinel"]).await?);
        }
        let servers = Self { data, sentinels };
        servers.settle().await?;
        Ok(servers)
    }

    /// The ports of the sentinels.
    #[must_use]
    pub fn sentinel_ports(&self) -> Vec<u16> {
        self.sentinels.iter().map(Server::port).collect()
    }

    /// The master that a sentinel names.
    ///
    /// # Errors
    /// When it names none.
    pub async fn master(&self) -> Result<usize> {
        let Some(sentinel) = self.sentinels.first() else { return Ok(0) };
        let question = format!("SENTINEL get-master-addr-by-name {MASTER}");
        let answer = sentinel.ask(&question).await?;
        let is_named = |server: &Server| answer.contains(&server.port().to_string());
        self.data.iter().position(is_named).context("the master is none of the servers")
    }

    /// Waits until both replicas follow and every sentinel knows all others.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn settle(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_settled().await {
            if Instant::now() >= deadline {
                bail!("the servers do not find each other");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    async fn is_settled(&self) -> bool {
        for sentinel in &self.sentinels {
            let state = sentinel.ask("INFO sentinel").await.unwrap_or_default();
            if !(state.contains("status=ok,") && state.contains("slaves=2,sentinels=3")) {
                return false;
            }
        }
        let Ok(master) = self.master().await else { return false };
        for (index, server) in self.data.iter().enumerate() {
            let state = server.ask("INFO replication").await.unwrap_or_default();
            if self.data.len() > 1 && index != master && !state.contains("master_link_status:up") {
                return false;
            }
        }
        true
    }
}
