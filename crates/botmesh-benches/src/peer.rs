//! Other frameworks, measured by their scripts in `peers/`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use tempfile::TempDir;

use crate::Workload;

const FILES: [(&str, &str); 5] = [
    ("package.json", include_str!("../peers/package.json")),
    ("measure.mjs", include_str!("../peers/measure.mjs")),
    ("chat.mjs", include_str!("../peers/chat.mjs")),
    ("grammy.mjs", include_str!("../peers/grammy.mjs")),
    ("telegraf.mjs", include_str!("../peers/telegraf.mjs")),
];

/// One peer's work that compares to one of ours.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its name in the table.
    pub name: &'static str,
    /// What of ours it compares to.
    pub like: Workload,
    script: &'static str,
    mode: &'static str,
}

/// All that are measured.
pub const PEERS: [Peer; 4] = [
    Peer { name: "grammY", like: Workload::Handler, script: "grammy.mjs", mode: "handler" },
    Peer { name: "telegraf", like: Workload::Handler, script: "telegraf.mjs", mode: "handler" },
    Peer { name: "grammY", like: Workload::UserState, script: "grammy.mjs", mode: "session" },
    Peer { name: "telegraf", like: Workload::UserState, script: "telegraf.mjs", mode: "session" },
];

/// What a peer's script prints.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Measured {
    /// Messages in each second.
    pub rate: f64,
    /// Half of the messages were answered within so many microseconds, one at a time.
    pub p50: f64,
    /// 99 of 100 were.
    pub p99: f64,
}

/// The scripts with what they need, in a temporary directory.
#[derive(Debug)]
pub struct Peers(TempDir);

impl Peers {
    /// Fetches the frameworks from the npm registry.
    ///
    /// # Errors
    /// When there is no node or npm, or the registry cannot be reached.
    pub fn install() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        for (name, text) in FILES {
            std::fs::write(directory.path().join(name), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        run(npm.stdout(Stdio::null()), directory.path())?;
        Ok(Self(directory))
    }

    /// Where the scripts are.
    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Measures one peer once.
    ///
    /// # Errors
    /// When its script fails.
    pub fn measure(&self, peer: &Peer, chats: u64, messages: u64) -> Result<Measured> {
        let mut node = Command::new("node");
        node.arg(peer.script).arg(peer.mode).arg(chats.to_string()).arg(messages.to_string());
        let printed = run(&mut node, self.0.path())?;
        serde_json::from_str(&printed)
            .with_context(|| format!("{} printed {printed:?}", peer.script))
    }
}

fn run(command: &mut Command, directory: &Path) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(directory)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{name} could not be started: install node and npm"))?;
    if !output.status.success() {
        bail!("{name} failed with {}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
