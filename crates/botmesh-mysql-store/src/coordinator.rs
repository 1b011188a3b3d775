//! Coordinates replicas through the same server.

mod backend;
mod builder;
#[cfg(feature = "durability")]
mod journal;
mod ledger;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod turns;

use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::{CoordinationError, CoordinatorSettings};

pub use builder::MysqlCoordinatorBuilder;

use crate::{MysqlStore, MysqlStoreBuilder};
use backend::MysqlBackend;

/// A coordinator of replicas in MySQL or MariaDB, made by [`MysqlStore::coordinator`] or by
/// [`connect`](Self::connect).
///
/// A free turn costs one round trip before the message is handled and one after it. Who waits polls,
/// for the server has no way to wake anybody. Heartbeats have a thread and a connection of their own.
///
/// ```no_run
/// use botmesh_core::coordination::{AcquireTurn, Coordinator};
/// use botmesh_core::{ChatKey, ProviderId};
/// use botmesh_mysql_store::MysqlStore;
///
/// # async fn coordinate() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MysqlStore::connect("mysql://bot@localhost/bots").prefix("shop_").await?;
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
pub struct MysqlCoordinator {
    client: CoordinatorClient<MysqlBackend>,
    /// Checks the server.
    store: MysqlStore,
}

impl MysqlCoordinator {
    /// A coordinator at a URL, over connections of its own.
    pub fn connect(url: impl AsRef<str>) -> MysqlCoordinatorBuilder {
        Self::through(MysqlStore::connect(url))
    }

    /// A coordinator at the server of a store that need not be opened, over connections of its own.
    pub fn through(store: MysqlStoreBuilder) -> MysqlCoordinatorBuilder {
        MysqlCoordinatorBuilder::through(store)
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

impl MysqlStore {
    /// A coordinator of replicas in the same database, under the same prefix. It shares the store's
    /// connections, and has one more for heartbeats.
    pub fn coordinator(&self) -> MysqlCoordinatorBuilder {
        MysqlCoordinatorBuilder::of(self.clone())
    }
}

botmesh_core::coordinator_by_client!(MysqlCoordinator, client, prepare);
