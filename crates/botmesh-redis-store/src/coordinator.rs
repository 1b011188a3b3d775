//! Coordinates replicas through the same Redis.

mod backend;
mod builder;
mod ear;
mod journal;
mod scripts;
mod sessions;
#[cfg(test)]
mod tests;
mod wire;

use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::{CoordinationError, CoordinatorSettings};
use botmesh_core::store::Store as _;

pub use builder::RedisCoordinatorBuilder;

use crate::{RedisStore, RedisStoreBuilder};
use backend::RedisBackend;

/// A coordinator of replicas in Redis, made by [`RedisStore::coordinator`] or by
/// [`connect`](Self::connect).
///
/// A free turn costs one round trip before the message is handled and one after it. Who waits is
/// woken by a message of the server on the same connection. Heartbeats have a thread and a
/// connection of their own.
///
/// ```no_run
/// use botmesh_core::coordination::{AcquireTurn, Coordinator};
/// use botmesh_core::{ChatKey, ProviderId};
/// use botmesh_redis_store::RedisStore;
///
/// # async fn coordinate() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::connect("redis://localhost").prefix("shop").await?;
/// let coordinator = store.coordinator().build()?;
/// coordinator.start().await?;
/// let chat = ChatKey::new(&ProviderId::new("telegram")?, "42")?;
/// let ticket = coordinator.reserve(&chat).await?;
/// let turn = coordinator.acquire_turn(ticket, AcquireTurn::new()).await?;
/// turn.release().await?;
/// coordinator.stop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedisCoordinator {
    client: CoordinatorClient<RedisBackend>,
    /// Checks the server.
    store: RedisStore,
}

impl RedisCoordinator {
    /// A coordinator on a single server. For Sentinel and clusters give what
    /// [`RedisStore::sentinel`] or [`RedisStore::cluster`] begin to
    /// [`through`](Self::through).
    pub fn connect(url: impl Into<String>) -> RedisCoordinatorBuilder {
        Self::through(RedisStore::connect(url))
    }

    /// A coordinator on the servers of a store that need not be opened.
    pub fn through(store: RedisStoreBuilder) -> RedisCoordinatorBuilder {
        RedisCoordinatorBuilder::through(store)
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &CoordinatorSettings {
        self.client.settings()
    }

    /// What the server does not do as it should, noticed at the start: empty on one that fits.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.store.warnings()
    }

    /// How many tickets this replica has reserved, waits for or holds.
    #[must_use]
    pub fn open_tickets(&self) -> usize {
        self.client.open_tickets()
    }

    /// Ends everything at once and tells the server nothing, as when the process is killed. For
    /// tests.
    pub fn abandon(&self) {
        self.client.abandon();
        self.client.backend().abandon();
    }

    /// Refuses what does not fit, and makes ready what is needed.
    async fn prepare(&self) -> Result<(), CoordinationError> {
        self.store.prepare().await.map_err(CoordinationError::at_start)?;
        self.client.backend().settle_here();
        Ok(())
    }
}

impl RedisStore {
    /// A coordinator of replicas on the same servers, under the same prefix, over connections of
    /// its own.
    pub fn coordinator(&self) -> RedisCoordinatorBuilder {
        RedisCoordinatorBuilder::of(self.clone())
    }
}

botmesh_core::coordinator_by_client!(RedisCoordinator, client, prepare);
