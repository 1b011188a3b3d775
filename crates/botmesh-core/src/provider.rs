//! What connects a bot to a messaging platform.

mod capabilities;
mod error;
mod fallback;
mod inbound;
mod media;
mod plain;
mod secret;
mod webhook;

pub use capabilities::{Capabilities, Capability, ChoiceLimits};
pub use error::{ProviderError, ProviderNotLeader, SendError};
pub use inbound::{Accepted, ConnectionState, DeliverError, Deliveries, Inbound, Session};
pub use media::MediaStream;
pub use secret::Secret;
pub use webhook::{Webhook, WebhookAnswer, WebhookRefusal};

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::{Media, Outgoing};

/// A connection to one messaging platform.
///
/// The runtime calls [`run`](Self::run) once and, at the same time, sends through the other
/// methods. What the platform cannot do is answered with [`ProviderError::Unsupported`] by the
/// default implementations, and [`capabilities`](Self::capabilities) says so beforehand.
#[async_trait]
pub trait Provider: Debug + Send + Sync + 'static {
    /// The id that is part of every chat key of this provider.
    fn id(&self) -> &ProviderId;

    /// What the platform can do.
    fn capabilities(&self) -> Capabilities;

    /// Receives until `session` is cancelled or the platform ends the connection for good.
    ///
    /// Each message goes to [`Inbound::deliver`]; only when that has returned may the platform be
    /// told that the message was taken. Dropping the future closes the connection.
    ///
    /// # Errors
    /// [`ProviderError`] when the connection is lost and the provider has given up.
    async fn run(&self, session: Session) -> Result<(), ProviderError>;

    /// Sends a message.
    ///
    /// # Errors
    /// [`ProviderError`].
    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError>;

    /// Replaces the content of a message of ours.
    ///
    /// # Errors
    /// [`ProviderError`]; [`ProviderError::Unsupported`] where messages cannot be edited.
    async fn edit(
        &self,
        _chat: &ChatKey,
        _message: &MessageId,
        _new: &Outgoing,
    ) -> Result<(), ProviderError> {
        Err(self.unsupported(Capability::Edit))
    }

    /// Deletes a message of ours.
    ///
    /// # Errors
    /// [`ProviderError`]; [`ProviderError::Unsupported`] where messages cannot be deleted.
    async fn delete(&self, _chat: &ChatKey, _message: &MessageId) -> Result<(), ProviderError> {
        Err(self.unsupported(Capability::Delete))
    }

    /// Reacts to a message; `None` takes the reaction back.
    ///
    /// # Errors
    /// [`ProviderError`]; [`ProviderError::Unsupported`] where there are no reactions.
    async fn react(
        &self,
        _chat: &ChatKey,
        _message: &MessageId,
        _emoji: Option<&str>,
    ) -> Result<(), ProviderError> {
        Err(self.unsupported(Capability::React))
    }

    /// Shows for a short while that the bot is writing.
    ///
    /// # Errors
    /// [`ProviderError`]; [`ProviderError::Unsupported`] where there is no such sign.
    async fn typing(&self, _chat: &ChatKey) -> Result<(), ProviderError> {
        Err(self.unsupported(Capability::Typing))
    }

    /// Opens a picture, a recording or a file that a user sent, to be read piece by piece.
    ///
    /// # Errors
    /// [`ProviderError`]; [`ProviderError::Unsupported`] where nothing can be downloaded.
    async fn download(&self, _media: &Media) -> Result<MediaStream, ProviderError> {
        Err(self.unsupported(Capability::Download))
    }

    /// Where the platform calls over HTTP, if it does.
    fn webhook(&self) -> Option<&dyn Webhook> {
        None
    }

    /// The error for something that this platform cannot do.
    fn unsupported(&self, capability: Capability) -> ProviderError {
        ProviderError::Unsupported { provider: self.id().clone(), capability }
    }
}

/// What a send may take along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// The same key means the same send: a platform that knows such keys delivers it once.
    pub idempotency_key: Option<String>,
    /// Give up after this time.
    pub timeout: Option<Duration>,
}

/// What the platform answered to a send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The platform's id of the (last) message that was made.
    pub message: Option<MessageId>,
}

impl Receipt {
    /// The platform gave the message this id.
    #[must_use]
    pub const fn of(message: MessageId) -> Self {
        Self { message: Some(message) }
    }
}
