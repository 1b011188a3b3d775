use std::fmt;
use std::time::Duration;

use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::transition::Limits;
use botmesh_core::id::ReplicaId;
use botmesh_core::store::StoreError;

use super::MysqlCoordinator;
use super::backend::MysqlBackend;
use crate::{MysqlStore, MysqlStoreBuilder};

/// The shortest time after which a connection without an answer counts as broken.
const LEAST_RESPONSE: Duration = Duration::from_millis(100);

/// Builds a [`MysqlCoordinator`].
#[must_use = "call `build`"]
pub struct MysqlCoordinatorBuilder {
    source: Source,
    replica: Option<ReplicaId>,
    settings: CoordinatorSettings,
}

#[derive(Debug)]
enum Source {
    Open(MysqlStore),
    Described(Box<MysqlStoreBuilder>),
}

impl MysqlCoordinatorBuilder {
    pub(super) fn of(store: MysqlStore) -> Self {
        Self::new(Source::Open(store))
    }

    pub(super) fn through(store: MysqlStoreBuilder) -> Self {
        Self::new(Source::Described(Box::new(store)))
    }

    fn new(source: Source) -> Self {
        Self { source, replica: None, settings: CoordinatorSettings::default() }
    }

    /// What the names of all tables begin with, so that several bots share a
    /// database. The replicas of one bot have the same. A coordinator of an open store has the
    /// store's.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        if let Source::Described(store) = self.source {
            self.source = Source::Described(Box::new(store.prefix(prefix)));
        }
        self
    }

    /// The id of this replica; random by default. Another process with the same id is another
    /// replica all the same.
    pub fn replica_id(mut self, replica: ReplicaId) -> Self {
        self.replica = Some(replica);
        self
    }

    /// How to lease and wait.
    pub fn settings(mut self, settings: CoordinatorSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Builds the coordinator. It contacts nothing before its start.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL or a name that cannot be used.
    pub fn build(self) -> Result<MysqlCoordinator, StoreError> {
        let store = match self.source {
            Source::Open(store) => store,
            Source::Described(store) => store.build()?,
        };
        let driver = store.sql.driver().clone();
        let response = driver.connections.settings().response;
        // A connection that stands still must be replaced before the lease ends.
        let response = response.min((self.settings.lease() / 4).max(LEAST_RESPONSE));
        let limits = Limits::from(&self.settings);
        let backend = MysqlBackend::new(driver, limits, response);
        #[cfg(feature = "durability")]
        let backend = backend.journaling(std::sync::Arc::clone(&store.sql));
        let mut client =
            CoordinatorClient::builder(backend).settings(self.settings).isolated_heartbeat(true);
        if let Some(replica) = self.replica {
            client = client.replica_id(replica);
        }
        Ok(MysqlCoordinator { client: client.build(), store })
    }
}

impl fmt::Debug for MysqlCoordinatorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlCoordinatorBuilder")
            .field("source", &self.source)
            .field("replica", &self.replica)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
