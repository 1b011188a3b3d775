//! Replicas of a test, over any coordinator.

use std::time::Duration;

use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator, CoordinatorSettings, Ticket};
use botmesh_core::{ChatKey, ReplicaId};

/// The lease of the replicas of a test.
pub const LEASE: Duration = Duration::from_millis(1500);

/// The settings of a replica with this lease.
///
/// # Panics
/// When nobody could have such a lease.
#[must_use]
pub fn settings(lease: Duration) -> CoordinatorSettings {
    CoordinatorSettings::builder().lease(lease).build().unwrap()
}

/// The id that all replicas of a test have, which must not matter.
///
/// # Panics
/// Never.
#[must_use]
pub fn id() -> ReplicaId {
    ReplicaId::new("twin").unwrap()
}

/// Starts a replica.
///
/// # Panics
/// When it does not start.
pub async fn start(replica: &impl Coordinator) {
    // On a busy machine registering on a slow disk may take longer than one attempt has.
    let mut started = replica.start().await;
    for _ in 0..20 {
        if started.as_ref().is_err_and(|error| error.is_unavailable()) {
            started = replica.start().await;
        }
    }
    started.unwrap();
}

/// A chat.
///
/// # Panics
/// When the name is none.
#[must_use]
pub fn chat(name: &str) -> ChatKey {
    ChatKey::decode(&format!("suite:{name}")).unwrap()
}

/// Waits for the turn of a ticket.
///
/// # Panics
/// When there is none to be had.
pub async fn acquire(replica: &impl Coordinator, ticket: Ticket) -> ChatTurn {
    replica.acquire_turn(ticket, AcquireTurn::new()).await.unwrap()
}

/// Reserves and waits.
///
/// # Panics
/// When there is no turn to be had.
pub async fn take(replica: &impl Coordinator, name: &str) -> ChatTurn {
    acquire(replica, replica.reserve(&chat(name)).await.unwrap()).await
}
