//! A coordinator whose process dies before or after a step that its turns take along.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::Replica;
use crate::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, CoordinatorEvent, IngestError, Ingested,
    JournaledTurns, Leadership, Ticket, TurnGuard,
};
use crate::id::{ChatKey, IncarnationId, LeaderName, ReplicaId};
use crate::store::{Commit, Committed, InboxStore as _, NewRecord, Realm};
use crate::testing::{CrashPoints, CrashingStore};

/// The coordinator of a replica, for a process that dies as the points of its store say.
#[derive(Debug)]
pub(in crate::conformance) struct CrashingCoordinator {
    replica: Arc<dyn Replica>,
    store: CrashingStore,
    points: CrashPoints,
}

impl CrashingCoordinator {
    pub(in crate::conformance) const fn new(
        replica: Arc<dyn Replica>,
        store: CrashingStore,
        points: CrashPoints,
    ) -> Self {
        Self { replica, store, points }
    }

    fn inner(&self) -> &dyn Coordinator {
        self.replica.coordinator()
    }

    /// The steps of the inbox that is behind the points.
    fn steps(&self) -> Option<&dyn JournaledTurns> {
        let store = self.replica.store()?;
        let steps = self.inner().journaled()?;
        steps.is_in(store.inbox()?.realm()?).then_some(steps)
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Coordinator for CrashingCoordinator {
    fn replica_id(&self) -> &ReplicaId {
        self.inner().replica_id()
    }

    fn incarnation(&self) -> Option<IncarnationId> {
        self.inner().incarnation()
    }

    async fn start(&self) -> Result<(), CoordinationError> {
        self.inner().start().await
    }

    async fn stop(&self) -> Result<(), CoordinationError> {
        self.inner().stop().await
    }

    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError> {
        self.inner().reserve(key).await
    }

    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError> {
        self.inner().acquire_turn(ticket, options).await
    }

    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError> {
        self.inner().lead(name).await
    }

    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError> {
        self.inner().try_lead(name).await
    }

    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent> {
        self.inner().subscribe()
    }

    fn journaled(&self) -> Option<&dyn JournaledTurns> {
        self.steps().map(|_| self as _)
    }
}

#[async_trait]
impl JournaledTurns for CrashingCoordinator {
    fn is_in(&self, realm: &Realm) -> bool {
        self.store.realm() == Some(realm)
    }

    async fn ingest(&self, record: NewRecord<'_>) -> Result<Ingested, IngestError> {
        let absent = || IngestError::Refused("turns take no inbox along".into());
        self.points.pass().await;
        let answer = self.steps().ok_or_else(absent)?.ingest(record).await;
        self.points.pass().await;
        answer
    }

    async fn commit(
        &self,
        turn: &TurnGuard,
        commit: Commit<'_>,
    ) -> Result<Committed, CoordinationError> {
        self.points.pass().await;
        let steps = self.steps().ok_or(CoordinationError::Stopped)?;
        let answer = steps.commit(turn, commit).await;
        self.points.pass().await;
        answer
    }
}
