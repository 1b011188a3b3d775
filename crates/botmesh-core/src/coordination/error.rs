use std::fmt;

use thiserror::Error;

use crate::id::{ChatKey, Fence};

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

/// What ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Its work was done and it was released; something went on acting afterwards.
    Ended,
    /// The lease could not be renewed in time.
    Expired,
    /// Another holder has taken the chat.
    Superseded,
    /// A step took longer than `settle` and was cut.
    Settled,
    /// The bot or its coordinator has stopped.
    Stopped,
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
