//! Three masters with a replica each, which share all slots.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use super::{DataServer, PATIENCE, POLL, Server, Servers};

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

/// Starts six nodes and makes a cluster of them.
pub(super) async fn start(directory: &Path) -> Result<Vec<DataServer>> {
    let arguments = [
        ["--cluster-enabled", "yes"],
        ["--cluster-config-file", "nodes.conf"],
        ["--cluster-node-timeout", "1000"],
        ["--repl-diskless-sync-delay", "0"],
        ["--appendonly", "yes"],
        ["--save", ""],
    ];
    let mut nodes = Vec::new();
    for _ in 0..2 * MASTERS {
        nodes.push(Server::start_with(directory, arguments.as_flattened()).await?);
    }
    for (index, node) in nodes.iter().enumerate() {
        accept(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1)).await?;
        if index < MASTERS {
            let (first, next) = (index * SLOTS / MASTERS, (index + 1) * SLOTS / MASTERS);
            accept(node, &format!("CLUSTER ADDSLOTSRANGE {first} {}", next - 1)).await?;
        }
        accept(&nodes[0], &format!("CLUSTER MEET 127.0.0.1 {}", node.port())).await?;
    }
    for (master, replica) in nodes.iter().zip(&nodes[MASTERS..]) {
        let name = master.ask("CLUSTER MYID").await?;
        let name = name.lines().nth(1).context("a node has no name")?;
        // Until it has heard of its master.
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = accept(replica, &format!("CLUSTER REPLICATE {name}")).await {
            if Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(nodes.into_iter().map(DataServer::Redis).collect())
}

async fn accept(node: &Server, command: &str) -> Result<()> {
    let answer = node.ask(command).await?;
    if !answer.starts_with("+OK") {
        bail!("{command}: {}", answer.trim());
    }
    Ok(())
}

impl Servers {
    /// Whether every node serves, and each master has its replica.
    pub(super) async fn is_whole_cluster(&self) -> bool {
        let mut followers = 0;
        for node in &self.data {
            let state = node.ask("CLUSTER INFO").await.unwrap_or_default();
            if !state.contains("cluster_state:ok") || !state.contains("cluster_known_nodes:6") {
                return false;
            }
            let role = node.ask("INFO replication").await.unwrap_or_default();
            followers += usize::from(role.contains("master_link_status:up"));
        }
        followers == MASTERS && self.masters().await.len() == MASTERS
    }

    /// The node that follows a master.
    pub(super) async fn follower(&self, master: usize) -> Option<&DataServer> {
        let wanted = format!("master_port:{}\r", self.data.get(master)?.port());
        for node in &self.data {
            if node.ask("INFO replication").await.is_ok_and(|role| role.contains(&wanted)) {
                return Some(node);
            }
        }
        None
    }
}
