//! The replicas of one backend, for what is measured alike on all.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_postgres_store::{PostgresCoordinator, PostgresStore};
use botmesh_redis_store::RedisCoordinator;

/// Starts replicas at one server.
pub(super) trait Fleet: Clone + Send + Sync + 'static {
    type Replica: Coordinator + 'static;

    /// Starts one.
    fn start(
        &self,
        settings: CoordinatorSettings,
    ) -> impl Future<Output = Result<Arc<Self::Replica>>> + Send;

    /// Lets it fall silent, as when it is killed.
    fn kill(replica: &Self::Replica);
}

/// Those on Redis.
#[derive(Debug, Clone)]
pub(super) struct Redis {
    pub(super) url: String,
}

impl Fleet for Redis {
    type Replica = RedisCoordinator;

    async fn start(&self, settings: CoordinatorSettings) -> Result<Arc<RedisCoordinator>> {
        super::replica_with(&self.url, settings).await
    }

    fn kill(replica: &RedisCoordinator) {
        replica.abandon();
    }
}

/// Those on PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Postgres {
    pub(super) url: String,
}

impl Fleet for Postgres {
    type Replica = PostgresCoordinator;

    async fn start(&self, settings: CoordinatorSettings) -> Result<Arc<PostgresCoordinator>> {
        let store = PostgresStore::connect(&self.url).prefix("bench_");
        let replica = PostgresCoordinator::through(store).settings(settings).build()?;
        replica.start().await?;
        Ok(Arc::new(replica))
    }

    fn kill(replica: &PostgresCoordinator) {
        replica.abandon();
    }
}
