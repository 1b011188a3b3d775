//! The replicas of one backend, for what is measured alike on all.

use std::future::Future;
use std::sync::Arc;

use anyhow::Result;
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_core::id::ChatKey;
use botmesh_mongo_store::{MongoCoordinator, MongoStore};
use botmesh_mysql_store::{MysqlCoordinator, MysqlStore};
use botmesh_postgres_store::{Pooler, PostgresCoordinator, PostgresStore};
use botmesh_redis_store::RedisCoordinator;

use super::take;

/// So many connections a store has by default.
pub(super) const CONNECTIONS: usize = 10;

/// Starts replicas at one server.
pub(super) trait Fleet: Clone + Send + Sync + 'static {
    type Replica: Coordinator + 'static;

    /// Starts one with so many connections at most, where a statement has one to itself.
    fn start(
        &self,
        settings: CoordinatorSettings,
        connections: usize,
    ) -> impl Future<Output = Result<Arc<Self::Replica>>> + Send;

    /// Starts one and waits until it has had a turn: where all is new, nothing is granted for a lease.
    fn ready(
        &self,
        settings: CoordinatorSettings,
        connections: usize,
    ) -> impl Future<Output = Result<Arc<Self::Replica>>> + Send {
        async move {
            let replica = self.start(settings, connections).await?;
            take(&*replica, &ChatKey::decode("bench:warm")?).await?.release().await?;
            Ok(replica)
        }
    }

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

    async fn start(
        &self,
        settings: CoordinatorSettings,
        _connections: usize,
    ) -> Result<Arc<RedisCoordinator>> {
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
    pub(super) pooler: Pooler,
}

impl Fleet for Postgres {
    type Replica = PostgresCoordinator;

    async fn start(
        &self,
        settings: CoordinatorSettings,
        connections: usize,
    ) -> Result<Arc<PostgresCoordinator>> {
        let store = PostgresStore::connect(&self.url).prefix("bench_").pooler(self.pooler);
        let store = store.max_connections(connections);
        let replica = PostgresCoordinator::through(store).settings(settings).build()?;
        replica.start().await?;
        Ok(Arc::new(replica))
    }

    fn kill(replica: &PostgresCoordinator) {
        replica.abandon();
    }
}

/// Those on MySQL.
#[derive(Debug, Clone)]
pub(super) struct Mysql {
    pub(super) url: String,
}

impl Fleet for Mysql {
    type Replica = MysqlCoordinator;

    async fn start(
        &self,
        settings: CoordinatorSettings,
        connections: usize,
    ) -> Result<Arc<MysqlCoordinator>> {
        let store = MysqlStore::connect(&self.url).prefix("bench_").max_connections(connections);
        let replica = MysqlCoordinator::through(store).settings(settings).build()?;
        replica.start().await?;
        Ok(Arc::new(replica))
    }

    fn kill(replica: &MysqlCoordinator) {
        replica.abandon();
    }
}

/// Those on MongoDB.
#[derive(Debug, Clone)]
pub(super) struct Mongo {
    pub(super) url: String,
    pub(super) database: &'static str,
}

impl Fleet for Mongo {
    type Replica = MongoCoordinator;

    async fn start(
        &self,
        settings: CoordinatorSettings,
        connections: usize,
    ) -> Result<Arc<MongoCoordinator>> {
        let store = MongoStore::connect(&self.url).database(self.database);
        let store = store.max_connections(u32::try_from(connections)?);
        let replica = MongoCoordinator::through(store).settings(settings).build()?;
        replica.start().await?;
        Ok(Arc::new(replica))
    }

    fn kill(replica: &MongoCoordinator) {
        replica.abandon();
    }
}
