//! Several processes of one bot on one Redis, and the same of a peer that locks its chats there.

mod crowd;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::coordination::server::PrivateServer;
use crate::peer::Peers;
use crate::spread::Spread;

pub use crowd::Replica;

/// How much is delivered.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many processes there are.
    pub processes: u64,
    /// How many chats their messages are for; each process has messages for all of them.
    pub chats: u64,
    /// How many messages each process is given.
    pub messages: u64,
    /// How many of them at the same time.
    pub at_once: u64,
}

/// Whose processes are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// A bot of ours.
    Ours,
    /// Chat SDK as it is by default: it refuses a message whose chat is at work.
    ChatDrop,
    /// Chat SDK with its queue: it hands over the newest message, and the others as skipped.
    ChatQueue,
}

/// What one process tells when it has done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Done {
    begun: u64,
    ended: u64,
    handled: u64,
    skipped: u64,
    refused: u64,
}

/// What several processes did with the messages of one load.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    /// Messages that were handled in each second.
    pub rate: f64,
    /// How many of a thousand were handled.
    pub handled: f64,
    /// How many of a thousand were handed over as skipped beside another.
    pub skipped: f64,
    /// How many of a thousand were refused.
    pub refused: f64,
    /// How many of a thousand nobody was told of.
    pub lost: f64,
}

impl Contender {
    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "botmesh",
            Self::ChatDrop => "Chat SDK, drop",
            Self::ChatQueue => "Chat SDK, queue",
        }
    }

    /// Runs `load` on a Redis of its own.
    ///
    /// # Errors
    /// When a process cannot be started or does not come to its end.
    pub fn measure(self, load: Load, peers: &Peers) -> Result<Total> {
        let server = PrivateServer::start()?;
        let processes: Vec<Running> = (0..load.processes)
            .map(|index| Running::start(self.command(&server.url(), index, load, peers)?))
            .collect::<Result<_>>()?;
        let ready: Vec<Running> =
            processes.into_iter().map(Running::ready).collect::<Result<_>>()?;
        let begun: Vec<Running> = ready.into_iter().map(Running::begin).collect::<Result<_>>()?;
        let done: Vec<Done> = begun.into_iter().map(Running::done).collect::<Result<_>>()?;
        Total::of(&done, load)
    }

    fn command(self, url: &str, index: u64, load: Load, peers: &Peers) -> Result<Command> {
        let mut command = match self {
            Self::Ours => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(Replica::FLAG).arg(url);
                command
            }
            Self::ChatDrop | Self::ChatQueue => {
                let strategy = if self == Self::ChatDrop { "drop" } else { "queue" };
                let mut command = Command::new("node");
                command.arg(Path::new("chat.mjs")).arg(strategy).arg(url);
                command.current_dir(peers.directory());
                command
            }
        };
        for number in [index, load.chats, load.messages, load.at_once] {
            command.arg(number.to_string());
        }
        Ok(command)
    }
}

impl Total {
    fn of(done: &[Done], load: Load) -> Result<Self> {
        let sum = |part: fn(&Done) -> u64| done.iter().map(part).sum::<u64>() as f64;
        let begun = done.iter().map(|it| it.begun).min().context("there was no process")?;
        let ended = done.iter().map(|it| it.ended).max().context("there was no process")?;
        ensure!(ended > begun, "nothing was handled");
        let (handled, skipped, refused) =
            (sum(|it| it.handled), sum(|it| it.skipped), sum(|it| it.refused));
        let given = (load.messages * load.processes) as f64;
        let share = |count: f64| count / given * 1_000.0;
        Ok(Self {
            rate: handled / ((ended - begun) as f64 / 1_000.0),
            handled: share(handled),
            skipped: share(skipped),
            refused: share(refused),
            lost: share(given - handled - skipped - refused),
        })
    }

    /// The median of each figure.
    ///
    /// # Errors
    /// When there is none.
    pub fn medians(runs: &[Self]) -> Result<Self> {
        let median = |part: fn(&Self) -> f64| {
            let parts: Vec<f64> = runs.iter().map(part).collect();
            Spread::of(&parts).map(|spread| spread.median).context("nothing was measured")
        };
        Ok(Self {
            rate: median(|it| it.rate)?,
            handled: median(|it| it.handled)?,
            skipped: median(|it| it.skipped)?,
            refused: median(|it| it.refused)?,
            lost: median(|it| it.lost)?,
        })
    }
}

/// A process that says when it is ready, begins when it is told to, and prints what it has done.
struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let output = child.stdout.take().context("it has no output")?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    fn ready(mut self) -> Result<Self> {
        let line = self.line()?;
        if line != "ready" {
            bail!("a process said {line:?} instead of being ready");
        }
        Ok(self)
    }

    fn begin(mut self) -> Result<Self> {
        let input = self.child.stdin.as_mut().context("it has no input")?;
        writeln!(input, "begin")?;
        Ok(self)
    }

    fn done(mut self) -> Result<Done> {
        let line = self.line()?;
        let done = serde_json::from_str(&line).with_context(|| format!("{line:?}"))?;
        self.child.wait()?;
        Ok(done)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}
