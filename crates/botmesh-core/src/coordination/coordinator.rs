use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::error::CoordinationError;
use super::event::CoordinatorEvent;
use super::journaled::JournaledTurns;
use super::leadership::Leadership;
use super::ticket::{AcquireTurn, Ticket};
use super::turn::ChatTurn;
use crate::id::{ChatKey, IncarnationId, LeaderName, ReplicaId};

/// Decides between replicas which one processes a chat and which one leads. One instance for each
/// replica; the bot starts and stops it.
///
/// What is granted ends when its guard is dropped, and every method may be cancelled by dropping
/// its future: a reservation whose future was dropped leaves no ticket behind.
#[async_trait]
pub trait Coordinator: Debug + Send + Sync + 'static {
    /// The id of this replica.
    fn replica_id(&self) -> &ReplicaId;

    /// The present incarnation of this replica; none before the first start. It is another one
    /// after a lease was lost, and never that of another process.
    fn incarnation(&self) -> Option<IncarnationId>;

    /// Registers this replica and begins to renew its lease. Does nothing when it runs already.
    ///
    /// # Errors
    /// [`CoordinationError`] when the backend does not answer or cannot coordinate.
    async fn start(&self) -> Result<(), CoordinationError>;

    /// Releases every turn, ticket and leadership of this replica and stops renewing. Does nothing
    /// when it does not run.
    ///
    /// # Errors
    /// [`CoordinationError`] when the backend could not be told; everything ends locally in any
    /// case, and at the backend when the lease ends.
    async fn stop(&self) -> Result<(), CoordinationError>;

    /// Reserves the next place in the queue of `key`, across all replicas. Call it in the order in
    /// which the chat's messages arrived, each after the one before has been answered.
    ///
    /// # Errors
    /// [`CoordinationError`] when the backend does not answer or the queue is full.
    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError>;

    /// Waits until it is the turn of `ticket`.
    ///
    /// # Errors
    /// [`CoordinationError::LeaseLost`] when the ticket was skipped because this replica was
    /// presumed dead, [`CoordinationError::TimedOut`] after the longest wait. The place in the
    /// queue is given up then.
    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError>;

    /// Campaigns for `name` until elected; drop the future to cancel. Candidates are elected in
    /// the order in which they began.
    ///
    /// # Errors
    /// [`CoordinationError`] when the campaign cannot go on. Then this replica does not lead.
    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError>;

    /// Attempts once to be elected for `name`; none when another replica leads.
    ///
    /// # Errors
    /// [`CoordinationError`] when the backend does not answer. Then this replica does not lead.
    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError>;

    /// The events from now on. A receiver that lags behind loses the oldest.
    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent>;

    /// Turns that take the steps of an inbox along, where the backend has one; none by default.
    fn journaled(&self) -> Option<&dyn JournaledTurns> {
        None
    }
}

/// A shared coordinator is one as well: keep a clone to take part in elections of your own.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<C: Coordinator + ?Sized> Coordinator for Arc<C> {
    fn replica_id(&self) -> &ReplicaId {
        (**self).replica_id()
    }

    fn incarnation(&self) -> Option<IncarnationId> {
        (**self).incarnation()
    }

    async fn start(&self) -> Result<(), CoordinationError> {
        (**self).start().await
    }

    async fn stop(&self) -> Result<(), CoordinationError> {
        (**self).stop().await
    }

    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError> {
        (**self).reserve(key).await
    }

    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError> {
        (**self).acquire_turn(ticket, options).await
    }

    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError> {
        (**self).lead(name).await
    }

    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError> {
        (**self).try_lead(name).await
    }

    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent> {
        (**self).subscribe()
    }

    fn journaled(&self) -> Option<&dyn JournaledTurns> {
        (**self).journaled()
    }
}
