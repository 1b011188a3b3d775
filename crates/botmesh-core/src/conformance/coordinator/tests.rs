//! The suite on the hub, and proof that it notices a broken hub.

use std::time::Duration;

use super::*;
use crate::conformance::{COORDINATOR_CASES, CoordinatorCase};
use crate::coordination::transition::Mutation;
use crate::store::MemoryStore;
use crate::testing::{MemoryCoordinationHub, MemoryCoordinator};

#[derive(Debug)]
struct HubFixture {
    hub: MemoryCoordinationHub,
    store: MemoryStore,
    pushes: bool,
}

impl HubFixture {
    /// A hub in virtual time.
    fn new() -> Self {
        tokio::time::pause();
        Self {
            hub: MemoryCoordinationHub::new(),
            store: MemoryStore::new().as_shared(),
            pushes: true,
        }
    }

    fn without_pushes() -> Self {
        Self { pushes: false, ..Self::new() }
    }
}

#[derive(Debug)]
struct HubReplica {
    coordinator: MemoryCoordinator,
    store: MemoryStore,
}

#[async_trait]
impl CoordinatorFixture for HubFixture {
    async fn open(
        &self,
        _prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let store = self.store.clone();
        let builder = MemoryCoordinator::builder(&self.hub)
            .replica_id(replica)
            .settings(settings)
            .pushes(self.pushes)
            .journaling(store.clone());
        Some(Arc::new(HubReplica { coordinator: builder.build(), store }))
    }

    async fn operations(&self, _prefix: &str) -> Option<u64> {
        Some(self.hub.operations())
    }
}

#[async_trait]
impl Replica for HubReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.coordinator
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.store.clone()))
    }

    async fn crash(&self) {
        self.coordinator.crash();
    }

    async fn freeze(&self) -> bool {
        self.coordinator.faults().freeze();
        true
    }

    async fn thaw(&self) {
        self.coordinator.faults().thaw();
    }

    async fn lose_pushes(&self) -> bool {
        self.coordinator.faults().drop_pushes(true);
        true
    }
}

/// C13: the hub keeps the whole contract.
mod on_the_hub {
    crate::coordinator_conformance!(super::HubFixture::new());
}

/// C14: everything works by polling alone.
mod by_polling {
    crate::coordinator_conformance!(super::HubFixture::without_pushes());
}

async fn failures(mutation: Mutation) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for CoordinatorCase { name, run, .. } in COORDINATOR_CASES {
        let (hub, store) = (MemoryCoordinationHub::new(), MemoryStore::new().as_shared());
        let fixture = HubFixture { hub, store, pushes: true };
        fixture.hub.break_rule(mutation);
        let outcome = tokio::time::timeout(Duration::from_secs(600), run(&fixture)).await;
        if !matches!(outcome, Ok(Ok(()))) {
            failed.push(*name);
        }
    }
    failed
}

/// C3: the suite notices when a rule is broken.
#[tokio::test(start_paused = true)]
async fn broken_rules_fail_the_suite() {
    for (mutation, wanted) in [
        (Mutation::LastInFirstOut, "turns_are_granted_in_the_order_of_reservation"),
        (Mutation::TakeFromTheLiving, "a_chat_has_one_holder_at_a_time"),
        (Mutation::FenceNotRaised, "a_chat_has_one_holder_at_a_time"),
        (Mutation::StopAtTheDead, "tickets_of_a_dead_replica_are_skipped"),
    ] {
        let failed = failures(mutation).await;
        assert!(failed.contains(&wanted), "{mutation:?} fails only {failed:?}");
    }
}
