use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::key::CoordinationKey;
use crate::error::BoxError;
use crate::id::{ChatKey, Fence, LeaderName};
use crate::store::StoreError;

/// The right to act on a chat is gone; nothing more may be sent or written under it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the turn of chat {key} with fence {fence} {reason}: nothing more is sent or written under it"
)]
#[non_exhaustive]
pub struct LeaseLost {
    /// The chat.
    pub key: ChatKey,
    /// The fence of the turn that was lost.
    pub fence: Fence,
    /// What happened to it.
    pub reason: LossReason,
}

impl LeaseLost {
    /// The loss of the turn of `key` that had `fence`.
    #[must_use]
    pub const fn new(key: ChatKey, fence: Fence, reason: LossReason) -> Self {
        Self { key, fence, reason }
    }
}

/// A leadership is gone; what it protected must stop.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the leadership of {name} with fence {fence} {reason}: what runs under it must stop")]
#[non_exhaustive]
pub struct LeadershipLost {
    /// What was led.
    pub name: LeaderName,
    /// The fence of the leadership that was lost.
    pub fence: Fence,
    /// What happened to it.
    pub reason: LossReason,
}

/// What ended a turn or a leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Its work was done and it was released; something went on acting afterwards.
    Ended,
    /// The lease could not be renewed in time.
    Expired,
    /// Another holder has taken it.
    Superseded,
    /// A step took longer than `settle` and was cut.
    Settled,
    /// The bot or its coordinator has stopped.
    Stopped,
}

impl LossReason {
    pub(super) const fn encode(self) -> u8 {
        match self {
            Self::Ended => 1,
            Self::Expired => 2,
            Self::Superseded => 3,
            Self::Settled => 4,
            Self::Stopped => 5,
        }
    }

    /// Zero means that nothing was lost.
    pub(super) const fn decode(code: u8) -> Option<Self> {
        match code {
            0 => None,
            2 => Some(Self::Expired),
            3 => Some(Self::Superseded),
            4 => Some(Self::Settled),
            5 => Some(Self::Stopped),
            _ => Some(Self::Ended),
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "has ended",
            Self::Expired => "expired before it could be renewed",
            Self::Superseded => "was taken over by another holder",
            Self::Settled => "was cut because its step took longer than `settle`",
            Self::Stopped => "ended because the bot stopped",
        })
    }
}

/// Why a coordinator could not grant what it was asked for.
///
/// `TimedOut`, `Unavailable` and `Full` are the cases of "coordination unavailable":
/// [`is_unavailable`](CoordinationError::is_unavailable) tells them from a lost lease and a stop.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoordinationError {
    /// The place in the queue or the right itself is gone.
    #[error("the place in the queue of {key} {reason}: reserve a new one")]
    LeaseLost {
        /// The chat or leadership.
        key: CoordinationKey,
        /// What happened.
        reason: LossReason,
    },
    /// The wait took longer than allowed. The place in the queue was given up.
    #[error(
        "coordination unavailable: {key} was not granted within {waited:?}: its holder is slow or many wait"
    )]
    TimedOut {
        /// The chat or leadership.
        key: CoordinationKey,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The backend does not answer, or refuses. The coordinator recovers by itself.
    #[error(
        "coordination unavailable: the backend failed ({operation}): check that it runs and is reachable"
    )]
    Unavailable {
        /// What was asked of it.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: BoxError,
    },
    /// Too many wait for this key already.
    #[error("coordination unavailable: {waiting} tickets wait for {key} already: try again later")]
    Full {
        /// The chat or leadership.
        key: CoordinationKey,
        /// How many wait.
        waiting: u32,
    },
    /// The coordinator was not started, or was stopped.
    #[error("the coordinator is not running: start it first, and reserve nothing after its stop")]
    Stopped,
    /// The ticket was reserved with another coordinator.
    #[error("the ticket for {key} is of another coordinator: acquire it where it was reserved")]
    ForeignTicket {
        /// The chat of the ticket.
        key: CoordinationKey,
    },
    /// The backend is there but this coordinator cannot work with it.
    #[error("the backend cannot coordinate: {reason}")]
    Unfit {
        /// Why, with what to do.
        reason: String,
    },
}

impl CoordinationError {
    /// What the error of a store means for a coordinator that starts on it: what is refused can never
    /// work as it is set up, all else may pass.
    #[must_use]
    pub fn at_start(error: StoreError) -> Self {
        match error {
            StoreError::Refused { reason, .. } => Self::Unfit { reason },
            StoreError::NewerSchema { .. } => Self::Unfit { reason: error.to_string() },
            error => Self::Unavailable { operation: "start", source: Box::new(error) },
        }
    }

    /// Whether coordination was unavailable, for which a message reports an error and may be
    /// tried again.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Unavailable { .. } | Self::Full { .. })
    }
}
