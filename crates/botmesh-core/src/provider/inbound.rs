use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ProviderError;
use crate::coordination::SessionLease;
use crate::error::BoxError;
use crate::id::ProviderId;
use crate::message::Message;

/// One run of a provider: where its messages go, and when it has to end.
#[derive(Clone)]
pub struct Session {
    inbound: Inbound,
    cancel: CancellationToken,
    state: Arc<watch::Sender<ConnectionState>>,
    reports: Option<Reports>,
    lease: Option<Arc<SessionLease>>,
}

type Reports = Arc<dyn Fn(ProviderError) + Send + Sync>;

/// Whether a provider is connected to its platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Not connected yet, or connecting again.
    #[default]
    Connecting,
    /// Messages come in and go out.
    Open,
    /// Ended; it will not come back by itself.
    Closed,
}

impl Session {
    /// A session that delivers to `inbound` until `cancel`, and reports to `state`.
    #[must_use]
    pub const fn new(
        inbound: Inbound,
        cancel: CancellationToken,
        state: Arc<watch::Sender<ConnectionState>>,
    ) -> Self {
        Self { inbound, cancel, state, reports: None, lease: None }
    }

    /// Hands what [`report`](Self::report) is given to `listener`.
    #[must_use]
    pub fn reporting_to(
        mut self,
        listener: impl Fn(ProviderError) + Send + Sync + 'static,
    ) -> Self {
        self.reports = Some(Arc::new(listener));
        self
    }

    /// The session is this replica's alone for as long as `lease` lives.
    #[must_use]
    pub fn leased(mut self, lease: Option<Arc<SessionLease>>) -> Self {
        self.lease = lease;
        self
    }

    /// How long the session is certainly this replica's alone; none when nothing bounds it. What
    /// the platform is asked to do must end within this time: whoever comes next must not meet a
    /// request of a process that froze.
    #[must_use]
    pub fn exclusive_for(&self) -> Option<Duration> {
        self.lease.as_ref().map(|lease| lease.remaining())
    }

    /// Tells of a failure that the provider deals with itself and goes on. Tell each failure once,
    /// not with each retry.
    pub fn report(&self, error: ProviderError) {
        match &self.reports {
            Some(listener) => listener(error),
            None => tracing::warn!(%error, "a provider reports a failure"),
        }
    }

    /// Where messages go.
    #[must_use]
    pub const fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Reports the state of the connection.
    pub fn set_state(&self, state: ConnectionState) {
        self.state.send_if_modified(|present| std::mem::replace(present, state) != state);
    }

    /// Whether the session has to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the session has to end. Safe to cancel.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("state", &*self.state.borrow())
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Takes the messages of a provider.
#[derive(Clone)]
pub struct Inbound(Arc<dyn Deliveries>);

/// What stands behind [`Inbound`]: the runtime, or a test.
#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    /// See [`Inbound::deliver`].
    ///
    /// # Errors
    /// [`DeliverError`].
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError>;
}

impl Inbound {
    /// An entrance to these deliveries.
    #[must_use]
    pub fn new(deliveries: Arc<dyn Deliveries>) -> Self {
        Self(deliveries)
    }

    /// Hands a message over and waits until the bot has accepted it; that is the moment to
    /// acknowledge it to the platform. Waits while the bot has as many messages in work as it may.
    ///
    /// # Errors
    /// [`DeliverError`]; the message was not taken and the platform should send it again.
    pub fn deliver(
        &self,
        message: Message,
    ) -> impl Future<Output = Result<Accepted, DeliverError>> + Send {
        self.0.deliver(message)
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inbound")
    }
}

/// How a message was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Accepted {
    /// It will be handled.
    New,
    /// It was accepted before; nothing will happen.
    Duplicate,
}

/// Why a message was not taken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeliverError {
    /// Too many messages of this chat wait already.
    #[error("the chat has {waiting} messages waiting: deliver this one again later")]
    ChatFull {
        /// How many wait.
        waiting: usize,
    },
    /// The bot is stopping or has stopped.
    #[error("the bot takes no more messages: it is stopping")]
    Stopping,
    /// The message's chat key names another provider than the one that delivered it.
    #[error(
        "a message of provider {provider} came with the chat key of {found}: use your own id in chat keys"
    )]
    WrongProvider {
        /// Who delivered it.
        provider: ProviderId,
        /// Whom the key names.
        found: String,
    },
    /// It could not be made durable.
    #[error("the message could not be stored")]
    Store(#[source] BoxError),
}
