use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::faults::CoordinationFaults;
use super::hub::MemoryCoordinationHub;
use super::journal::MemoryJournal;
use crate::coordination::client::{
    Backend, BackendError, CoordinatorClient, JournalBackend, PushSink,
};
use crate::coordination::transition::{Limits, Operation, Reply};
use crate::coordination::{CoordinatorSettings, LeaseClock};
use crate::id::{IncarnationId, ReplicaId};
use crate::store::Store;

/// A coordinator over a [`MemoryCoordinationHub`], with the same client as every other one.
///
/// ```
/// use botmesh_core::coordination::{AcquireTurn, Coordinator};
/// use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator};
/// use botmesh_core::{ChatKey, ProviderId};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hub = MemoryCoordinationHub::new();
/// let replica = MemoryCoordinator::builder(&hub).build();
/// replica.start().await?;
/// let chat = ChatKey::new(&ProviderId::new("terminal")?, "ana")?;
/// let ticket = replica.reserve(&chat).await?;
/// let turn = replica.acquire_turn(ticket, AcquireTurn::new()).await?;
/// assert!(turn.check().is_ok());
/// turn.release().await?;
/// replica.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryCoordinator(CoordinatorClient<MemoryBackend>);

/// Builds a [`MemoryCoordinator`].
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct MemoryCoordinatorBuilder {
    hub: MemoryCoordinationHub,
    replica: Option<ReplicaId>,
    settings: CoordinatorSettings,
    pushes: bool,
    store: Option<Arc<dyn Store>>,
}

/// What carries operations to a [`MemoryCoordinationHub`].
#[derive(Debug)]
pub struct MemoryBackend {
    hub: MemoryCoordinationHub,
    limits: Limits,
    faults: CoordinationFaults,
    pushes: bool,
    listening: Mutex<Option<IncarnationId>>,
    journal: Option<MemoryJournal>,
}

impl MemoryCoordinator {
    /// Begins a coordinator of `hub` with a random replica id.
    pub fn builder(hub: &MemoryCoordinationHub) -> MemoryCoordinatorBuilder {
        let settings = CoordinatorSettings::default();
        MemoryCoordinatorBuilder {
            hub: hub.clone(),
            replica: None,
            settings,
            pushes: true,
            store: None,
        }
    }

    /// Dies at once: nothing is released, nothing that it granted allows an effect any more, and
    /// the hub hears no more of it.
    pub fn crash(&self) {
        self.faults().freeze();
        self.0.abandon();
    }

    /// What goes wrong between this coordinator and the hub.
    #[must_use]
    pub fn faults(&self) -> &CoordinationFaults {
        &self.0.backend().faults
    }

    /// How many tickets this replica has reserved, waits for or holds.
    #[must_use]
    pub fn open_tickets(&self) -> usize {
        self.0.open_tickets()
    }
}

impl MemoryCoordinatorBuilder {
    /// The id of the replica.
    pub fn replica_id(mut self, replica: ReplicaId) -> Self {
        self.replica = Some(replica);
        self
    }

    /// How to lease and wait.
    pub fn settings(mut self, settings: CoordinatorSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Whether the hub pushes wake-ups, as it does by default; without them waiting tickets poll.
    pub const fn pushes(mut self, pushes: bool) -> Self {
        self.pushes = pushes;
        self
    }

    /// Takes the steps of this store's inbox along, as if both were one backend.
    pub fn journaling(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Builds the coordinator.
    #[must_use]
    pub fn build(self) -> MemoryCoordinator {
        let (limits, faults) = (Limits::from(&self.settings), CoordinationFaults::default());
        let journal = self.store.and_then(|store| {
            MemoryJournal::new(store, self.hub.clone(), limits.clone(), faults.clone())
        });
        let backend = MemoryBackend {
            hub: self.hub,
            limits,
            faults,
            pushes: self.pushes,
            listening: Mutex::new(None),
            journal,
        };
        let mut client = CoordinatorClient::builder(backend)
            .settings(self.settings)
            // The hub's clock is tokio's too.
            .clock(LeaseClock::tokio());
        if let Some(replica) = self.replica {
            client = client.replica_id(replica);
        }
        MemoryCoordinator(client.build())
    }
}

impl MemoryBackend {
    /// A backend without faults that carries operations to `hub`.
    #[must_use]
    pub fn new(hub: &MemoryCoordinationHub, limits: Limits) -> Self {
        let (faults, listening) = (CoordinationFaults::default(), Mutex::new(None));
        Self { hub: hub.clone(), limits, faults, pushes: true, listening, journal: None }
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.faults.carry(async { Ok(self.hub.execute(operation, &self.limits).reply) }).await
    }

    fn journal(&self) -> Option<&dyn JournalBackend> {
        self.journal.as_ref().map(|journal| journal as _)
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
    ) -> Result<(), BackendError> {
        if !self.pushes {
            return Ok(());
        }
        self.faults.pass().await;
        let before = self.listening.lock().replace(incarnation.clone());
        if let Some(before) = before {
            self.hub.forget_listener(&before);
        }
        pushes.connected();
        self.hub.listen(incarnation, pushes, self.faults.clone());
        Ok(())
    }

    async fn close(&self) {
        if let Some(incarnation) = self.listening.lock().take() {
            self.hub.forget_listener(&incarnation);
        }
    }
}

crate::coordinator_by_client!(MemoryCoordinator, 0);
