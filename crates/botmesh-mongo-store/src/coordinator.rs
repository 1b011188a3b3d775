//! Coordinates replicas through the same MongoDB.

mod backend;
mod builder;
mod clock;
mod doubts;
mod ear;
mod known;
mod repeats;
mod rows;
mod schema;
mod shortcut;
#[cfg(test)]
mod tests;
mod wire;

use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::{CoordinationError, CoordinatorSettings};

pub use builder::MongoCoordinatorBuilder;

use crate::{MongoStore, MongoStoreBuilder};
use backend::MongoBackend;

/// A coordinator of replicas in MongoDB, made by [`MongoStore::coordinator`] or by
/// [`connect`](Self::connect).
///
/// A turn costs one `findAndModify` before the message is handled and one after it, whether somebody
/// waits or not; the first turn of a chat in a day costs two operations more. Who waits is woken by
/// a change stream; where there is no replica set, tickets poll. Heartbeats have a thread and
/// connections of their own.
///
/// ```no_run
/// use botmesh_core::coordination::{AcquireTurn, Coordinator};
/// use botmesh_core::{ChatKey, ProviderId};
/// use botmesh_mongo_store::MongoStore;
///
/// # async fn coordinate() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MongoStore::connect("mongodb://localhost/bots?replicaSet=rs0").await?;
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
pub struct MongoCoordinator {
    client: CoordinatorClient<MongoBackend>,
    /// Checks the server.
    store: MongoStore,
}

impl MongoCoordinator {
    /// A coordinator at a URL, over connections of its own.
    pub fn connect(url: impl AsRef<str>) -> MongoCoordinatorBuilder {
        Self::through(MongoStore::connect(url))
    }

    /// A coordinator at the server of a store that need not be opened, over connections of its own.
    pub fn through(store: MongoStoreBuilder) -> MongoCoordinatorBuilder {
        MongoCoordinatorBuilder::through(store)
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &CoordinatorSettings {
        self.client.settings()
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
        self.store.examine().await.map_err(CoordinationError::at_start)?;
        schema::prepare(&self.store).await.map_err(CoordinationError::at_start)?;
        self.client.backend().settle_here();
        Ok(())
    }
}

impl MongoStore {
    /// A coordinator of replicas in the same database, under the same prefix. It shares the store's
    /// connections, and has up to three more for heartbeats and wake-ups. Over a client of the
    /// program it has no others: then a runtime that is very busy delays heartbeats too.
    pub fn coordinator(&self) -> MongoCoordinatorBuilder {
        MongoCoordinatorBuilder::of(self.clone())
    }
}

botmesh_core::coordinator_by_client!(MongoCoordinator, client, prepare);
