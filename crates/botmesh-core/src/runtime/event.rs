use std::fmt;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::outbox::UncertainOutcome;
use crate::coordination::CoordinatorEvent;
use crate::error::BotError;
use crate::id::{ChatKey, ConversationName, Position, ProviderId};
use crate::provider::ConnectionState;

/// Something that whoever runs the bot may want to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Something failed; the bot goes on.
    Error(ErrorEvent),
    /// A provider's connection changed.
    Connection {
        /// The provider.
        provider: ProviderId,
        /// Its state now.
        state: ConnectionState,
    },
    /// A right to lead or to act on a chat came or went, or a conversation was handed over.
    Coordination(CoordinatorEvent),
    /// A stored conversation could not be continued, and what was done about it.
    Unrestorable {
        /// The chat.
        chat: ChatKey,
        /// Why.
        reason: String,
    },
    /// A message could not be processed in all its attempts, and its chat goes on without it (with
    /// durability). [`RunningBot::dead_letters`](crate::RunningBot::dead_letters) lists it.
    DeadLetter {
        /// The chat.
        chat: ChatKey,
        /// Its place in the inbox of the chat.
        position: Position,
        /// How often it was tried.
        attempts: u32,
        /// What was being done the last time.
        during: Activity,
        /// What went wrong the last time.
        error: Arc<BotError>,
    },
    /// It was not known whether the platform had taken a message of the bot, and what was done
    /// about it (with durability).
    Uncertain {
        /// The chat.
        chat: ChatKey,
        /// What was done.
        outcome: UncertainOutcome,
    },
    /// What became of an occurrence of a job (feature `scheduler`).
    #[cfg(feature = "scheduler")]
    Job(super::jobs::JobEvent),
    /// The bot has stopped; no more events follow.
    Stopped {
        /// How many accepted messages were still unhandled when the time for stopping was over.
        unhandled: usize,
    },
    /// This many events were missed, since they were not read fast enough.
    Missed(u64),
}

/// What failed, where.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorEvent {
    /// The chat that was worked for, if it was one.
    pub chat: Option<ChatKey>,
    /// What was being done.
    pub during: Activity,
    /// What went wrong.
    pub error: Arc<BotError>,
}

/// What the bot was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// Running a `before` hook.
    Hook,
    /// Running a handler or a layer around it.
    Handler,
    /// Running a flow or a conversation.
    Conversation(ConversationName),
    /// Waiting for the turn of a chat; the message was not handled.
    Turn,
    /// Campaigning for the leadership of a provider, or for the lease of the scheduler.
    Leadership,
    /// Reading or writing a checkpoint.
    Checkpoint,
    /// Being connected to a platform.
    Provider(ProviderId),
    /// Taking messages of a platform.
    Ingress,
    /// Running a job, by its name.
    Job(Arc<str>),
    /// Reading or writing the inbox.
    Inbox,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook => f.write_str("a before hook"),
            Self::Handler => f.write_str("a handler"),
            Self::Conversation(name) => write!(f, "the conversation {name}"),
            Self::Turn => f.write_str("the turn of a chat"),
            Self::Leadership => f.write_str("the election of a leader"),
            Self::Checkpoint => f.write_str("a checkpoint"),
            Self::Provider(id) => write!(f, "the provider {id}"),
            Self::Ingress => f.write_str("the ingress"),
            Self::Job(name) => write!(f, "the job {name}"),
            Self::Inbox => f.write_str("the inbox"),
        }
    }
}

/// Hands events to whoever listens; an error that nobody hears is logged.
#[derive(Clone)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(1024))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    pub(crate) fn emit(&self, event: Event) {
        if let Err(broadcast::error::SendError(Event::Error(event))) = self.0.send(event) {
            let chat = event.chat.as_ref().map_or("", ChatKey::provider);
            tracing::error!(provider = chat, error = %event.error, "{} failed", event.during);
        }
    }

    pub(crate) fn error(
        &self,
        chat: Option<&ChatKey>,
        during: Activity,
        error: impl Into<BotError>,
    ) {
        let error = Arc::new(error.into());
        self.emit(Event::Error(ErrorEvent { chat: chat.cloned(), during, error }));
    }
}
