use std::time::Duration;

use botmesh_core::coordination::{
    AcquireTurn, ChatTurn, Coordinator as _, CoordinatorSettings, Ticket,
};
use botmesh_core::{ChatKey, ReplicaId};
use botmesh_postgres_store::{PostgresCoordinator, PostgresStoreBuilder};

/// The lease of the replicas of a test.
pub(crate) const LEASE: Duration = Duration::from_millis(1500);

/// A replica that is not yet started.
pub(crate) fn replica_with(store: PostgresStoreBuilder, lease: Duration) -> PostgresCoordinator {
    let settings = CoordinatorSettings::builder().lease(lease).build().unwrap();
    let id = ReplicaId::new("twin").unwrap();
    PostgresCoordinator::through(store).replica_id(id).settings(settings).build().unwrap()
}

/// A started replica. All have the same id, which must not matter.
pub(crate) async fn replica(store: PostgresStoreBuilder) -> PostgresCoordinator {
    let replica = replica_with(store, LEASE);
    // On a busy machine registering on a slow disk may take longer than one attempt has.
    let mut started = replica.start().await;
    for _ in 0..20 {
        if started.as_ref().is_err_and(|error| error.is_unavailable()) {
            started = replica.start().await;
        }
    }
    started.unwrap();
    replica
}

pub(crate) fn chat(name: &str) -> ChatKey {
    ChatKey::decode(&format!("suite:{name}")).unwrap()
}

/// Waits for the turn of a ticket.
pub(crate) async fn acquire(replica: &PostgresCoordinator, ticket: Ticket) -> ChatTurn {
    replica.acquire_turn(ticket, AcquireTurn::new()).await.unwrap()
}

/// Reserves and waits.
pub(crate) async fn take(replica: &PostgresCoordinator, name: &str) -> ChatTurn {
    acquire(replica, replica.reserve(&chat(name)).await.unwrap()).await
}
