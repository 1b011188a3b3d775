//! The suite on the hub, and proof that it notices a broken hub.

use std::time::Duration;

use super::*;
use crate::conformance::{COORDINATOR_CASES, CoordinatorCase};
use crate::coordination::transition::Mutation;
use crate::testing::{MemoryCoordinationHub, MemoryCoordinator};

#[derive(Debug)]
struct HubFixture {
    hub: MemoryCoordinationHub,
    pushes: bool,
}

impl HubFixture {
    /// A hub in virtual time.
    fn new() -> Self {
        tokio::time::pause();
        Self { hub: MemoryCoordinationHub::new(), pushes: true }
    }

    fn without_pushes() -> Self {
        Self { pushes: false, ..Self::new() }
    }
}

#[derive(Debug)]
struct HubReplica(MemoryCoordinator);

#[async_trait]
impl CoordinatorFixture for HubFixture {
    async fn open(
        &self,
        _prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let builder = MemoryCoordinator::builder(&self.hub).replica_id(replica).settings(settings);
        Some(Arc::new(HubReplica(builder.pushes(self.pushes).build())))
    }

    async fn operations(&self, _prefix: &str) -> Option<u64> {
        Some(self.hub.operations())
    }
}

#[async_trait]
impl Replica for HubReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.0
    }

    async fn crash(&self) {
        self.0.crash();
    }

    async fn freeze(&self) -> bool {
        self.0.faults().freeze();
        true
    }

    async fn thaw(&self) {
        self.0.faults().thaw();
    }

    async fn lose_pushes(&self) -> bool {
        self.0.faults().drop_pushes(true);
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
        let fixture = HubFixture { hub: MemoryCoordinationHub::new(), pushes: true };
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
