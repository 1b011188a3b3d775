//! What runs a bot: the way of one message from a provider to its handler and back.
//!
//! Provider → ingress → (journal) → lanes (one chat, one task) → turn → (record) → hooks, layers →
//! conversation or router → (outbox) → sender → provider. Whatever acts checks the turn's guard
//! first. What is in brackets is there with durability.

mod activity;
mod arrival;
mod attempts;
mod broken_rule;
mod context;
mod continuing;
mod conversing;
mod coordination;
mod durability;
mod event;
mod fences;
mod flows;
mod functions;
mod handover;
mod hashed;
mod inbox_watch;
mod ingress;
#[cfg(feature = "scheduler")]
mod jobs;
mod journal;
mod keeping;
mod lanes;
mod leading;
mod open_record;
mod outbox;
mod place;
mod profile;
mod recent;
mod recorded;
mod records;
mod restoring;
mod router;
mod scene;
mod sender;
mod sending;
mod supervisor;
mod timer;
mod turn;
mod wakes;
mod waking;
mod writer;

pub use broken_rule::BrokenRule;
pub use context::Context;
pub use coordination::{ProviderSession, Role};
pub use event::{Activity, ErrorEvent, Event};
pub use handover::{Fallback, FallbackFunction, Handover, HandoverInfo, HandoverReason};
#[cfg(feature = "scheduler")]
pub use jobs::{JobContext, JobEvent, JobOutcome};
pub use outbox::{ReconcileFunction, Uncertain, UncertainOutcome, UncertainSend};
pub use router::Next;

pub(crate) use conversing::{Conversations, ConversingSettings, Definition};
pub(crate) use coordination::{Coordinated, CoordinationSettings};
pub(crate) use durability::{DurabilitySettings, Durable};
pub(crate) use event::Events;
#[cfg(feature = "scheduler")]
pub(crate) use jobs::{BoxJob, JobDefinition, Jobs};
pub(crate) use lanes::LaneLimits;
pub(crate) use router::{Action, BoxHandler, Route, Router, box_handler, box_hook, box_layer};
pub(crate) use sender::Sender;
pub(crate) use supervisor::Supervisor;

use std::fmt;
use std::sync::Arc;

use lanes::Lanes;
use timer::Timers;
use tokio::sync::Notify;

use crate::error::BotError;
use crate::store::Store;

/// Everything that the tasks of a running bot share.
pub(crate) struct Runtime {
    sender: Sender,
    store: Arc<dyn Store>,
    events: Events,
    router: Router,
    conversations: Conversations,
    lanes: Lanes,
    timers: Timers,
    /// Asks for a look at what the store has to wake.
    look: Notify,
    fences: fences::LocalFences,
    coordinated: Option<Coordinated>,
    durable: Option<Durable>,
    #[cfg(feature = "scheduler")]
    jobs: Jobs,
}

impl Runtime {
    pub(crate) fn new(
        sender: Sender,
        store: Arc<dyn Store>,
        router: Router,
        conversations: Conversations,
        limits: LaneLimits,
        coordinated: Option<Coordinated>,
    ) -> Self {
        Self {
            sender,
            store,
            events: Events::new(),
            router,
            conversations,
            lanes: Lanes::new(limits),
            timers: Timers::default(),
            look: Notify::new(),
            fences: fences::LocalFences::new(),
            coordinated,
            durable: None,
            #[cfg(feature = "scheduler")]
            jobs: Jobs::default(),
        }
    }

    /// Keeps what comes in until it was processed.
    pub(crate) fn with_durability(mut self, durable: Option<Durable>) -> Self {
        self.durable = durable;
        self
    }

    /// Gives it the jobs of the bot.
    #[cfg(feature = "scheduler")]
    pub(crate) fn with_jobs(mut self, jobs: Jobs) -> Self {
        self.jobs = jobs;
        self
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Waits until everything that was accepted has been handled.
    pub(crate) async fn idle(&self) {
        self.lanes.idle().await;
    }

    /// Whether no more messages are taken.
    pub(crate) fn is_closed(&self) -> bool {
        self.lanes.is_closed()
    }

    pub(crate) fn conversation_number(&self, name: &str) -> Result<usize, BotError> {
        self.conversations.number(name).ok_or_else(|| {
            BotError::message(format!(
                "the bot has no flow or conversation {name:?}: add it with `Bot::flow` or `Bot::conversation`"
            ))
        })
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtime")
    }
}
