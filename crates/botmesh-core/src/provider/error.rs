use std::time::Duration;

use thiserror::Error;

use super::Capability;
use crate::coordination::LeaseLost;
use crate::error::BoxError;
use crate::id::ProviderId;

/// Why a provider could not send or receive.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The connection is closed for good: logged out, taken over by another, or given up.
    #[error("the connection of {provider} is closed: {reason}")]
    Closed {
        /// The provider.
        provider: ProviderId,
        /// Why.
        reason: String,
    },
    /// Another process receives the messages of this account.
    #[error("another process receives the messages of {provider}: {reason}")]
    Conflict {
        /// The provider.
        provider: ProviderId,
        /// What the platform said, and what to do.
        reason: String,
    },
    /// The platform wants fewer calls.
    #[error("{provider} asks to wait for {retry_after:?} before the next send")]
    RateLimited {
        /// The provider.
        provider: ProviderId,
        /// How long the platform wants us to wait.
        retry_after: Duration,
    },
    /// The platform does not accept the credentials.
    #[error("{provider} refused the credentials: check the token or password it was given")]
    Unauthorized {
        /// The provider.
        provider: ProviderId,
    },
    /// The user has blocked the bot, or the chat does not exist any more.
    #[error("{provider} cannot reach this chat any more: {reason}")]
    ChatGone {
        /// The provider.
        provider: ProviderId,
        /// What the platform said.
        reason: String,
    },
    /// The platform refuses this message; sending it again changes nothing.
    #[error("{provider} rejected the message: {reason}")]
    Rejected {
        /// The provider.
        provider: ProviderId,
        /// What the platform said.
        reason: String,
    },
    /// The platform sent something that cannot be read, and that is left out.
    #[error("{provider} sent something that cannot be read: {reason}")]
    Unreadable {
        /// The provider.
        provider: ProviderId,
        /// What and why.
        reason: String,
    },
    /// The platform does not answer; whether it took the message is not known.
    #[error("{provider} is unreachable")]
    Unreachable {
        /// The provider.
        provider: ProviderId,
        /// What the transport said.
        #[source]
        source: BoxError,
    },
    /// The platform has nothing of the kind.
    #[error("{provider} cannot {capability}: ask `capabilities()` before, or leave it out")]
    Unsupported {
        /// The provider.
        provider: ProviderId,
        /// What it cannot do.
        capability: Capability,
    },
}

impl ProviderError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unreachable { .. } | Self::Conflict { .. })
    }
}

/// Why a reply, an edit or a proactive send did not reach the platform.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The turn under which it was to be sent has ended.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// This replica is not the one that is connected.
    #[error(transparent)]
    NotLeader(#[from] ProviderNotLeader),
    /// The bot has no provider with the id in the chat key.
    #[error("the bot has no provider {provider:?}: add it with `Bot::provider`")]
    UnknownProvider {
        /// The id in the chat key.
        provider: String,
    },
    /// The platform or the connection to it failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// Another replica is connected to the platform; send through that one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{provider} is connected on another replica: send from the leader, or put the request where the leader sees it"
)]
pub struct ProviderNotLeader {
    /// The provider.
    pub provider: ProviderId,
}
