use std::fmt;
use std::time::Duration;

use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::transition::Limits;
use botmesh_core::id::ReplicaId;
use botmesh_core::store::StoreError;

use super::MongoCoordinator;
use super::backend::MongoBackend;
use crate::{MongoStore, MongoStoreBuilder};

/// The shortest time after which an answer counts as lost.
const LEAST_RESPONSE: Duration = Duration::from_millis(100);

/// Builds a [`MongoCoordinator`].
#[must_use = "call `build`"]
pub struct MongoCoordinatorBuilder {
    source: Source,
    replica: Option<ReplicaId>,
    settings: CoordinatorSettings,
}

#[derive(Debug)]
enum Source {
    Open(MongoStore),
    Described(Box<MongoStoreBuilder>),
}

impl MongoCoordinatorBuilder {
    pub(super) fn of(store: MongoStore) -> Self {
        Self::new(Source::Open(store))
    }

    pub(super) fn through(store: MongoStoreBuilder) -> Self {
        Self::new(Source::Described(Box::new(store)))
    }

    fn new(source: Source) -> Self {
        Self { source, replica: None, settings: CoordinatorSettings::default() }
    }

    /// What the names of all collections begin with, so that several bots share a
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
    pub fn build(self) -> Result<MongoCoordinator, StoreError> {
        let store = match self.source {
            Source::Open(store) => store,
            Source::Described(store) => store.build()?,
        };
        let response = store.connections().settings().response;
        // An answer that does not come must be given up before the lease ends.
        let response = response.min((self.settings.lease() / 4).max(LEAST_RESPONSE));
        let limits = Limits::from(&self.settings);
        let backend = MongoBackend::new(store.clone(), limits, response);
        let mut client =
            CoordinatorClient::builder(backend).settings(self.settings).isolated_heartbeat(true);
        if let Some(replica) = self.replica {
            client = client.replica_id(replica);
        }
        Ok(MongoCoordinator { client: client.build(), store })
    }
}

impl fmt::Debug for MongoCoordinatorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoCoordinatorBuilder")
            .field("source", &self.source)
            .field("replica", &self.replica)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
