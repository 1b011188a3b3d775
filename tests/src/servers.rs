//! The servers of one run: a single one, a master with replicas that sentinels watch, or a cluster.

mod clock;
mod cluster;
mod data;
mod layout;
mod mongo;
mod mysql;
mod postgres;
mod redis;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use crate::backend::MASTER;
pub use clock::ServerClock;
pub use data::DataServer;
pub use layout::Layout;
pub use mongo::Mongo;
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use redis::{Server, ask, is_installed};

/// All servers of a run.
#[derive(Debug)]
pub struct Servers {
    layout: Layout,
    /// Those with data; the first is a master of the beginning.
    pub data: Vec<DataServer>,
    sentinels: Vec<Server>,
}

const PATIENCE: Duration = Duration::from_secs(30);
/// In seconds.
const LAG: u64 = 2;
const POLL: Duration = Duration::from_millis(100);

impl Servers {
    /// Starts them, a single Redis with a clock that can be set.
    ///
    /// # Errors
    /// When they do not start or do not find each other.
    pub async fn start(
        directory: &Path,
        layout: Layout,
        clock: Option<&ServerClock>,
    ) -> Result<Self> {
        let (data, sentinels) = match layout {
            Layout::Single => {
                let server = match clock {
                    Some(clock) => Server::start_under(directory, clock).await?,
                    None => Server::start(directory).await?,
                };
                (vec![DataServer::Redis(server)], Vec::new())
            }
            Layout::Postgres => {
                (vec![DataServer::Postgres(Postgres::start(directory).await?)], Vec::new())
            }
            Layout::Mysql => (vec![DataServer::Mysql(Mysql::start(directory).await?)], Vec::new()),
            Layout::Mongo => (vec![DataServer::Mongo(Mongo::start(directory).await?)], Vec::new()),
            Layout::Sentinel => watched(directory).await?,
            Layout::Cluster => (cluster::start(directory).await?, Vec::new()),
        };
        let servers = Self { layout, data, sentinels };
        servers.settle().await?;
        Ok(servers)
    }

    /// Where replicas are told to look: the sentinels, or all servers with data.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        match self.layout {
            Layout::Sentinel => self.sentinels.iter().map(Server::port).collect(),
            _ => self.data.iter().map(DataServer::port).collect(),
        }
    }

    /// How long a master that was replaced may go on to take writes.
    #[must_use]
    pub const fn lag(&self) -> Duration {
        match self.layout {
            Layout::Single | Layout::Postgres | Layout::Mysql | Layout::Mongo | Layout::Cluster => {
                Duration::ZERO
            }
            Layout::Sentinel => Duration::from_secs(LAG),
        }
    }

    /// The servers that take writes at present, as far as they answer.
    pub async fn masters(&self) -> Vec<usize> {
        let mut masters = Vec::new();
        match self.layout {
            Layout::Single | Layout::Postgres | Layout::Mysql | Layout::Mongo => masters.push(0),
            Layout::Sentinel => masters.extend(self.named_master().await.ok()),
            Layout::Cluster => {
                for (index, node) in self.data.iter().enumerate() {
                    let role = node.ask("INFO replication").await.unwrap_or_default();
                    if role.contains("role:master") {
                        masters.push(index);
                    }
                }
            }
        }
        masters
    }

    /// Tells the replica of a master to take its place.
    pub async fn switch_over(&self, master: usize) {
        let asked = match (self.layout, self.sentinels.first()) {
            (Layout::Cluster, _) => match self.follower(master).await {
                Some(follower) => follower.ask("CLUSTER FAILOVER").await,
                None => return,
            },
            (_, Some(sentinel)) => sentinel.ask(&format!("SENTINEL FAILOVER {MASTER}")).await,
            _ => return,
        };
        // One that is refused changes nothing, which whoever waits for the change finds out.
        drop(asked);
    }

    /// The master that a sentinel names.
    async fn named_master(&self) -> Result<usize> {
        let sentinel = self.sentinels.first().context("there is no sentinel")?;
        let question = format!("SENTINEL get-master-addr-by-name {MASTER}");
        let answer = sentinel.ask(&question).await?;
        let is_named = |server: &DataServer| answer.contains(&server.port().to_string());
        self.data.iter().position(is_named).context("the master is none of the servers")
    }

    /// Waits until all replicas follow and everybody knows all others.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn settle(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.is_settled().await {
            if Instant::now() >= deadline {
                bail!("the servers do not find each other");
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    async fn is_settled(&self) -> bool {
        if self.layout == Layout::Cluster {
            return self.is_whole_cluster().await;
        }
        for sentinel in &self.sentinels {
            let state = sentinel.ask("INFO sentinel").await.unwrap_or_default();
            if !(state.contains("status=ok,") && state.contains("slaves=2,sentinels=3")) {
                return false;
            }
        }
        let masters = self.masters().await;
        for (index, server) in self.data.iter().enumerate() {
            let state = server.ask("INFO replication").await.unwrap_or_default();
            if !masters.contains(&index) && !state.contains("master_link_status:up") {
                return false;
            }
        }
        !masters.is_empty()
    }
}

async fn watched(directory: &Path) -> Result<(Vec<DataServer>, Vec<Server>)> {
    let lag = LAG.to_string();
    // Sentinel leaves a master alone for seconds that lives and was replaced. Without its replicas
    // it must not go on.
    let stops = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", &lag];
    let stored = ["--save", "", "--appendonly", "yes", "--repl-diskless-sync-delay", "0"];
    let stored = [stored.as_slice(), &stops].concat();
    let mut data = vec![DataServer::Redis(Server::start_with(directory, &stored).await?)];
    let master = data[0].port().to_string();
    for _ in 0..2 {
        let follow = [stored.as_slice(), &["--replicaof", "127.0.0.1", &master]].concat();
        data.push(DataServer::Redis(Server::start_with(directory, &follow).await?));
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
    Ok((data, sentinels))
}
