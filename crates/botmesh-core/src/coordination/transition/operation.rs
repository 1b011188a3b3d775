use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::coordination::hold::Grant;
use crate::coordination::key::CoordinationKey;
use crate::id::IncarnationId;

/// A ticket as a backend knows it. The caller chooses the sequence, each higher than the one
/// before, so that a request whose answer was lost can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TicketId {
    /// Whose ticket it is.
    pub incarnation: IncarnationId,
    /// Its number within the incarnation.
    pub sequence: u64,
}

/// What a coordinator asks of its backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opens a session. Answered by `Registered` or `Duplicate`.
    Register {
        /// A fresh incarnation.
        incarnation: IncarnationId,
        /// How long it lives without a heartbeat.
        lease: Duration,
    },
    /// Renews a session. Answered by `Renewed`, `Jumped` or `Expired`.
    Heartbeat {
        /// Whose session.
        incarnation: IncarnationId,
        /// Reservations of an earlier epoch are refused from now on.
        epoch: u32,
        /// The time since the caller sent its last renewal that succeeded, by its own clock: it
        /// tells a session that has expired from a clock that has jumped.
        age: Duration,
    },
    /// Closes a session, whose rights have been released before. Answered by `Stopped`.
    Stop {
        /// Whose session.
        incarnation: IncarnationId,
    },
    /// Takes the key, or the next place in its queue. Answered by `Granted`, `Queued`, `Full`,
    /// `NoSession` or `Stale`.
    Reserve {
        /// What is asked for.
        key: CoordinationKey,
        /// The ticket.
        ticket: TicketId,
        /// The caller's epoch when this was sent.
        epoch: u32,
    },
    /// Takes the key if it is free. Answered by `Granted`, `Busy`, `NoSession` or `Stale`.
    Attempt {
        /// What is asked for.
        key: CoordinationKey,
        /// The ticket.
        ticket: TicketId,
        /// The caller's epoch when this was sent.
        epoch: u32,
    },
    /// Asks what has become of a reserved ticket, and takes the key from a dead holder for whoever
    /// is next. Answered by `Granted`, `Queued`, `Superseded` or `NoSession`.
    Poll {
        /// What was asked for.
        key: CoordinationKey,
        /// The ticket.
        ticket: TicketId,
    },
    /// Gives up a ticket, whether it holds or waits, and grants to the next. Answered by
    /// `Released`, `Cancelled` or `NotHolder`.
    Release {
        /// What was asked for.
        key: CoordinationKey,
        /// The ticket.
        ticket: TicketId,
    },
    /// Keeps the record of a key that is held for long. Answered by `Touched` or `NotHolder`.
    Touch {
        /// What is held.
        key: CoordinationKey,
        /// The ticket that holds it.
        ticket: TicketId,
    },
}

impl Operation {
    /// A name for logs and errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Stop { .. } => "stop",
            Self::Reserve { .. } => "reserve",
            Self::Attempt { .. } => "attempt",
            Self::Poll { .. } => "poll",
            Self::Release { .. } => "release",
            Self::Touch { .. } => "touch",
        }
    }

    /// The key that it is about; none for operations on sessions.
    #[must_use]
    pub const fn key(&self) -> Option<&CoordinationKey> {
        match self {
            Self::Register { .. } | Self::Heartbeat { .. } | Self::Stop { .. } => None,
            Self::Reserve { key, .. }
            | Self::Attempt { key, .. }
            | Self::Poll { key, .. }
            | Self::Release { key, .. }
            | Self::Touch { key, .. } => Some(key),
        }
    }
}

/// What a backend answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reply {
    /// The session is open.
    Registered {
        /// The shortest lease of all sessions that live.
        shortest: Duration,
        /// The longest.
        longest: Duration,
    },
    /// The incarnation exists already: choose another.
    Duplicate,
    /// The session lives for another lease.
    Renewed,
    /// As `Renewed`; the backend's clock had been set forward, or the heartbeat was on its way for
    /// long. Nobody is taken for dead for a lease.
    Jumped,
    /// The session is gone for ever, and with it all that it held.
    Expired,
    /// The session is closed.
    Stopped,
    /// The ticket holds the key.
    Granted(Grant),
    /// The ticket waits.
    Queued {
        /// How many are before it, the holder included.
        ahead: u32,
        /// When a poll may find the holder dead, unless it renews its lease. Zero when it looks dead
        /// and the caller must renew its own session before it may take the key.
        remaining: Duration,
    },
    /// The key is not free, and the ticket was not queued.
    Busy {
        /// When another attempt may find the holder dead, unless it renews its lease. Zero as for
        /// `Queued`.
        remaining: Duration,
    },
    /// The queue is full, and the ticket was not queued.
    Full {
        /// How many wait.
        waiting: u32,
    },
    /// The ticket neither holds nor waits any more: it was skipped, given up or forgotten.
    Superseded,
    /// The caller has no session that lives.
    NoSession,
    /// The request belongs to an earlier epoch: it was given up, and is not executed.
    Stale,
    /// The key was given up.
    Released {
        /// The grant to a ticket of the same incarnation that was next. It gets no wake-up.
        next: Option<(u64, Grant)>,
    },
    /// The ticket had waited and waits no more.
    Cancelled,
    /// The ticket neither held nor waited.
    NotHolder,
    /// The record is kept for longer.
    Touched,
}

/// Tells an incarnation that a waiting ticket of it was granted. It is a hint that may be lost or
/// repeated; the record is the truth.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wakeup {
    /// Whose ticket, and which.
    pub ticket: TicketId,
    /// What was granted.
    pub key: CoordinationKey,
    /// The grant.
    pub grant: Grant,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The answer to the caller.
    pub reply: Reply,
    /// Whom to wake, of another incarnation than the caller's or of the caller's other tickets.
    pub wakeup: Option<Wakeup>,
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self { reply, wakeup: None }
    }
}
