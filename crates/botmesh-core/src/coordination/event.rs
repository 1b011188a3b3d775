use std::time::Duration;

use super::error::LossReason;
use super::key::CoordinationKey;
use crate::id::{ChatKey, ConversationName, Fence, LeaderName};

/// What a coordinator, or the bot above it, reports about rights that come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoordinatorEvent {
    /// This replica leads now.
    Leader {
        /// What it leads.
        name: LeaderName,
        /// The fence of the leadership.
        fence: Fence,
    },
    /// This replica does not lead any more.
    Follower {
        /// What it led.
        name: LeaderName,
        /// Why it does not any more.
        reason: LossReason,
    },
    /// A turn or a leadership was lost before its work was done.
    LeaseLost {
        /// The chat or leadership.
        key: CoordinationKey,
        /// What happened.
        reason: LossReason,
    },
    /// A conversation went on with another replica than the one that ran it.
    Handover {
        /// Its chat.
        key: ChatKey,
        /// Its name.
        name: ConversationName,
        /// How it went on.
        outcome: HandoverOutcome,
    },
    /// The backend's clock was set forward, as it seems. For a lease nothing is taken from replicas
    /// that are silent; everything else goes on.
    ClockJump,
    /// When this replica registered, others lived with another lease, and its
    /// [`grace`](super::CoordinatorSettingsBuilder::grace) does not cover the longest: after the
    /// backend has lost its data, a replica that is cut off may hold a chat beside another one.
    LeasesDiffer {
        /// The shortest lease of a replica that lives.
        shortest: Duration,
        /// The longest.
        longest: Duration,
    },
}

/// How a conversation went on after a hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandoverOutcome {
    /// It was resumed where it stood.
    Resumed,
    /// It was begun again.
    Restarted,
    /// The user was told that it was interrupted.
    Notified,
    /// It was given up, and the message routed as a new one.
    Dropped,
    /// The bot's own fallback consumed the message.
    Handled,
}
