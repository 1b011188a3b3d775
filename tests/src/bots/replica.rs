//! The process of a replica: a whole bot on Redis, connected to the platform of the run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use botmesh_core::bot::{BrokenRule, Coordination, Handover};
use botmesh_core::coordination::{CoordinatorEvent, CoordinatorSettings, HandoverOutcome};
use botmesh_core::{Bot, BotError, Event as Happened, ProviderId, ReplicaId, RunningBot};
use botmesh_redis_store::RedisStore;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::definition::{define, fallback};
use super::loopback::Loopback;
use super::notes::{Decision, Event, Life, Notebook};
use super::watched::{Turns, Watched};
use super::{EXCLUSIVE, SHARED};
use crate::process;

/// What a replica is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// Which start of a process this is.
    pub life: Life,
    /// The id of the replica.
    pub replica: String,
    /// Where Redis is.
    pub url: String,
    /// Where the platform listens.
    pub platform: u16,
    /// Which version of the bot it runs.
    pub version: u32,
    /// Its lease.
    pub lease: Duration,
    /// What it does about conversations that cannot go on.
    pub decision: Decision,
    /// A rule that it breaks, so that a test can prove that this is noticed.
    pub broken: Option<Mutant>,
    /// The file for its notes.
    pub notes: PathBuf,
}

/// A rule of the runtime that a replica breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mutant {
    /// What is in memory counts, whoever had the chat meanwhile.
    KeepsStaleCopies,
    /// Timers act without the turn of their chat.
    WakesWithoutTurn,
    /// Checkpoints are written when the turn is over.
    WritesAfterRelease,
}

impl Mutant {
    const fn rule(self) -> BrokenRule {
        match self {
            Self::KeepsStaleCopies => BrokenRule::KeepsStaleCopies,
            Self::WakesWithoutTurn => BrokenRule::WakesWithoutTurn,
            Self::WritesAfterRelease => BrokenRule::WritesAfterRelease,
        }
    }
}

/// The longest step, and the longest that a message waits for its turn.
const SETTLE: Duration = Duration::from_secs(5);
const TURN_WAIT: Duration = Duration::from_secs(15);
/// How long a stop lets messages be handled.
const STOP: Duration = Duration::from_secs(4);
/// How long a replica tries to start while its server is away.
const PATIENCE: Duration = Duration::from_secs(60);

const TICK: Duration = Duration::from_millis(5);
const STALL: Duration = Duration::from_millis(60);

impl Orders {
    /// The arguments of the replica's program.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    /// Reads the arguments of a replica's program.
    ///
    /// # Errors
    /// When they are not what a driver gives.
    pub fn read(arguments: &[String]) -> Result<Self> {
        let [orders] = arguments else { bail!("a replica is started by the driver, not by hand") };
        serde_json::from_str(orders).context("orders of another driver")
    }

    /// Runs the bot until it is told to stop or standard input ends.
    ///
    /// # Errors
    /// When it cannot be started within a minute.
    pub async fn obey(self) -> Result<()> {
        let notes = Arc::new(Notebook::new(&self.notes)?);
        let mut stopping = process::told_to_stop()?;
        let deadline = Instant::now() + PATIENCE;
        let running = loop {
            match self.start(&notes).await {
                Ok(running) => break running,
                Err(error) if Instant::now() >= deadline || *stopping.borrow() => {
                    bail!("the bot did not start: {error}");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        notes.note(Event::Started { version: self.version, decision: self.decision });
        tokio::spawn(measure_stalls(Arc::clone(&notes)));
        let heard = Arc::clone(&notes);
        running.on(move |happened| note(&heard, happened));
        let _ = stopping.wait_for(|stopping| *stopping).await;
        let unhandled = running.stop().await;
        notes.note(Event::Stopped { unhandled });
        Ok(())
    }

    async fn start(&self, notes: &Arc<Notebook>) -> Result<RunningBot, BotError> {
        let store = RedisStore::connect(self.url.as_str()).prefix("bots").await?;
        let settings = CoordinatorSettings::builder().lease(self.lease).build()?;
        let inner = store
            .coordinator()
            .settings(settings)
            .replica_id(ReplicaId::new(self.replica.as_str())?)
            .build()?;
        let turns = Arc::new(Turns::default());
        let watched = Watched { inner, notes: Arc::clone(notes), turns: Arc::clone(&turns) };
        let mut coordination = Coordination::new(watched)
            .settle(SETTLE)
            .turn_wait(TURN_WAIT)
            .handover(Handover::forward().fallback(fallback(self.decision)));
        if let Some(mutant) = self.broken {
            coordination = coordination.break_rule(mutant.rule());
        }
        let loopback = |id| -> Result<Loopback, BotError> {
            let id = ProviderId::new(id)?;
            Ok(Loopback::new(id, self.platform, self.life, Arc::clone(&turns)))
        };
        let bot = Bot::new(loopback(SHARED)?)
            .provider(loopback(EXCLUSIVE)?.exclusive())
            .store(store)
            .coordination(coordination)
            .stop_timeout(STOP);
        define(bot, self.version, notes).start().await
    }
}

fn note(notes: &Notebook, happened: Happened) {
    let event = match happened {
        Happened::Error(failed) => Event::Failed {
            chat: failed.chat.map(|chat| chat.as_str().to_owned()),
            during: failed.during.to_string(),
            error: failed.error.to_string(),
        },
        Happened::Coordination(CoordinatorEvent::Handover { key, name, outcome }) => {
            let resumed = outcome == HandoverOutcome::Resumed;
            let outcome = if resumed { "resumed".to_owned() } else { format!("{outcome:?}") };
            Event::Handover {
                chat: key.as_str().to_owned(),
                name: name.as_str().to_owned(),
                outcome,
            }
        }
        other => Event::Told { what: format!("{other:?}") },
    };
    notes.note(event);
}

async fn measure_stalls(notes: Arc<Notebook>) {
    loop {
        let begun = Instant::now();
        tokio::time::sleep(TICK).await;
        let length = begun.elapsed().saturating_sub(TICK);
        if length > STALL {
            notes.note(Event::Stalled { length: crate::history::nanos(length) });
        }
    }
}
