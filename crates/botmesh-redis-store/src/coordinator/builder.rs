use std::time::Duration;

use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::coordination::client::CoordinatorClient;
use botmesh_core::coordination::transition::Limits;
use botmesh_core::id::ReplicaId;
use botmesh_core::store::StoreError;

use super::RedisCoordinator;
use super::backend::RedisBackend;
use crate::{RedisStore, RedisStoreBuilder};

/// The shortest time after which a connection without an answer counts as broken.
const LEAST_RESPONSE: Duration = Duration::from_millis(100);

/// Builds a [`RedisCoordinator`].
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct RedisCoordinatorBuilder {
    servers: Source,
    replica: Option<ReplicaId>,
    settings: CoordinatorSettings,
}

#[derive(Debug)]
enum Source {
    Open(RedisStore),
    Described(Box<RedisStoreBuilder>),
}

impl RedisCoordinatorBuilder {
    pub(super) fn of(store: RedisStore) -> Self {
        Self::new(Source::Open(store))
    }

    pub(super) fn through(store: RedisStoreBuilder) -> Self {
        Self::new(Source::Described(Box::new(store)))
    }

    fn new(servers: Source) -> Self {
        Self { servers, replica: None, settings: CoordinatorSettings::default() }
    }

    /// What all keys begin with, so that several bots share a server. The replicas of one bot have
    /// the same. A coordinator of an open store has the store's.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        if let Source::Described(store) = self.servers {
            self.servers = Source::Described(Box::new(store.prefix(prefix)));
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
    /// [`StoreError::Refused`] for a URL or a prefix that cannot be used.
    pub fn build(self) -> Result<RedisCoordinator, StoreError> {
        let store = match self.servers {
            Source::Open(store) => store,
            Source::Described(store) => store.build()?,
        };
        let mut servers = store.servers().clone();
        // A connection that stands still must be replaced before the lease ends.
        servers.response = servers.response.min((self.settings.lease() / 4).max(LEAST_RESPONSE));
        let limits = Limits::from(&self.settings);
        let backend = RedisBackend::new(&servers, store.clone(), limits);
        let mut client =
            CoordinatorClient::builder(backend).settings(self.settings).isolated_heartbeat(true);
        if let Some(replica) = self.replica {
            client = client.replica_id(replica);
        }
        Ok(RedisCoordinator { client: client.build(), store })
    }
}
