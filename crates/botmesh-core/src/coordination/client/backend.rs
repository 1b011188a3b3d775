use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use super::journal::JournalBackend;
use super::tickets::{Delivery, TicketMap};
use crate::coordination::transition::{Operation, Reply, Wakeup};
use crate::coordination::{Release, Releases};
use crate::error::BoxError;
use crate::id::IncarnationId;
use crate::watched::Watched;

/// What carries operations to the place where [`step`](crate::coordination::transition::step)
/// decides, and wake-ups back. All else that a coordinator does is the
/// [`CoordinatorClient`](super::CoordinatorClient)'s: it repeats, polls, renews and repairs.
///
/// Operations of one caller that are sent one after the other must arrive in that order. Every
/// future may be dropped; the outcome of its operation is then unknown.
#[async_trait]
pub trait Backend: Debug + Send + Sync + 'static {
    /// A name for logs and errors, such as `redis`.
    fn name(&self) -> &'static str;

    /// Executes one operation.
    ///
    /// # Errors
    /// [`BackendError`]; it tells whether the operation may have been executed.
    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError>;

    /// Executes a heartbeat. Backends with a connection of its own for these use it here, so that
    /// renewals never wait behind other traffic. With
    /// [`isolated_heartbeat`](super::CoordinatorClientBuilder::isolated_heartbeat) it is called on
    /// another runtime than [`send`](Backend::send).
    ///
    /// # Errors
    /// As for [`send`](Backend::send).
    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.send(operation).await
    }

    /// Begins to receive the wake-ups of `incarnation`, in place of those of any incarnation
    /// before. Called before the incarnation is registered. A backend without pushes does nothing:
    /// waiting tickets then poll.
    ///
    /// The backend restores this by itself after its connection broke, and says
    /// [`connected`](PushSink::connected) each time.
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be told now; the client goes on and polls.
    async fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
    ) -> Result<(), BackendError>;

    /// What executes operations together with the steps of an inbox in the same place; none
    /// without one.
    fn journal(&self) -> Option<&dyn JournalBackend> {
        None
    }

    /// Stops receiving wake-ups and closes connections. Sending may follow, after a new start.
    async fn close(&self) {}
}

/// Why a backend did not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The operation was surely not executed.
    #[error("not executed")]
    Refused(#[source] BoxError),
    /// The operation may have been executed, or may yet be.
    #[error("outcome unknown")]
    Unknown(#[source] BoxError),
    /// This backend can never coordinate as it is set up.
    #[error("the backend cannot coordinate: {0}")]
    Unfit(String),
}

/// Whether wake-ups can arrive at present. Each new connection has another generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PushPath {
    pub(super) connected: bool,
    pub(super) generation: u64,
}

/// Where a backend delivers wake-ups. Cheap to clone; no call of it blocks.
#[derive(Clone, Debug)]
pub struct PushSink {
    pub(super) tickets: Arc<TicketMap>,
    pub(super) releases: Releases,
    pub(super) path: Watched<PushPath>,
}

impl PushSink {
    /// Delivers one wake-up. One that is repeated is ignored; one for a ticket that nobody holds
    /// any more gives the key back, which would be held by nobody otherwise.
    pub fn wake(&self, wakeup: Wakeup) {
        let Wakeup { ticket, key, grant } = wakeup;
        if let Delivery::Unclaimed(session) = self.tickets.grant(&ticket, grant) {
            let release = Release { key, session, sequence: ticket.sequence };
            self.releases.put(release);
        }
    }

    /// Wake-ups can arrive from now on. Those of before may have been lost: all waiting tickets
    /// poll once.
    pub fn connected(&self) {
        self.path.modify(|path| {
            path.connected = true;
            path.generation += 1;
        });
    }

    /// No wake-ups arrive until the next [`connected`](PushSink::connected): waiting tickets poll
    /// often.
    pub fn disconnected(&self) {
        self.path.modify(|path| path.connected = false);
    }
}
