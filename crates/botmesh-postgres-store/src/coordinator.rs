//! Coordinates replicas through the same PostgreSQL.

mod backend;
mod batch;
mod builder;
mod calls;
mod crowd;
mod dispatcher;
mod ear;
mod home;
#[cfg(feature = "durability")]
mod journal;
mod schema;
#[cfg(test)]
mod tests;
mod wire;

use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::{CoordinationError, CoordinatorSettings};

pub use builder::PostgresCoordinatorBuilder;

use crate::{PostgresStore, PostgresStoreBuilder};
use backend::PostgresBackend;

/// A coordinator of replicas in PostgreSQL, made by [`PostgresStore::coordinator`] or by
/// [`connect`](Self::connect).
///
/// A free turn costs one round trip before the message is handled and one after it. Who waits is
/// woken by `NOTIFY` on a connection that only listens; where there is no such connection, tickets
/// poll. Heartbeats have a thread and a connection of their own.
///
/// ```no_run
/// use botmesh_core::coordination::{AcquireTurn, Coordinator};
/// use botmesh_core::{ChatKey, ProviderId};
/// use botmesh_postgres_store::PostgresStore;
///
/// # async fn coordinate() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://bot@localhost/bots").schema("shop").await?;
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
pub struct PostgresCoordinator {
    client: CoordinatorClient<PostgresBackend>,
    /// Checks the server.
    store: PostgresStore,
}

impl PostgresCoordinator {
    /// A coordinator at a URL, over connections of its own.
    pub fn connect(url: impl AsRef<str>) -> PostgresCoordinatorBuilder {
        Self::through(PostgresStore::connect(url))
    }

    /// A coordinator at the server of a store that need not be opened, over connections of its own.
    pub fn through(store: PostgresStoreBuilder) -> PostgresCoordinatorBuilder {
        PostgresCoordinatorBuilder::through(store)
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

impl PostgresStore {
    /// A coordinator of replicas in the same schema, under the same prefix. It shares the store's
    /// connections, and has two more: one for heartbeats and one that listens.
    pub fn coordinator(&self) -> PostgresCoordinatorBuilder {
        PostgresCoordinatorBuilder::of(self.clone())
    }
}

botmesh_core::coordinator_by_client!(PostgresCoordinator, client, prepare);
