//! Where a bot keeps its messages.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use botmesh_core::bot::Coordination;
use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::store::{DeadLetter, StoreError};
use botmesh_core::testing::{CrashPoints, CrashingStore};
use botmesh_core::{Bot, BotError, ReplicaId};
use botmesh_mongo_store::MongoStore;
use botmesh_mysql_store::MysqlStore;
use botmesh_postgres_store::PostgresStore;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;
use serde::{Deserialize, Serialize};

/// Fewer than a store has by itself, for several replicas share a small machine.
const CONNECTIONS: u8 = 8;
/// So many dead letters are read: more than there ever are.
const LETTERS: usize = 10_000;

/// Where a bot keeps its messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Store {
    /// In a file, alone.
    Sqlite {
        /// Which.
        path: PathBuf,
    },
    /// On a server, as one of several replicas.
    Shared {
        /// Which kind.
        server: Server,
        /// Where.
        url: String,
        /// The beginning of the names of its tables, collections or keys.
        prefix: String,
    },
}

/// Which kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// MySQL, or MariaDB.
    Mysql,
    /// MongoDB.
    Mongo,
    /// Redis.
    Redis,
}

/// Opens the store on a server, and does something with it.
macro_rules! on_server {
    ($server:expr, $url:expr, $prefix:expr, $store:ident => $use:expr) => {
        match $server {
            Server::Postgres => {
                let $store = PostgresStore::connect($url).prefix($prefix);
                let $store = $store.max_connections(CONNECTIONS.into()).await?;
                $use
            }
            Server::Mysql => {
                let $store = MysqlStore::connect($url).prefix($prefix);
                let $store = $store.max_connections(CONNECTIONS.into()).await?;
                $use
            }
            Server::Mongo => {
                let $store = MongoStore::connect($url).prefix($prefix);
                let $store = $store.max_connections(CONNECTIONS.into()).await?;
                $use
            }
            Server::Redis => {
                let $store = RedisStore::connect($url).prefix($prefix).await?;
                $use
            }
        }
    };
}

impl Store {
    /// Gives a bot this store, and replicas their coordinator.
    ///
    /// # Errors
    /// When the store cannot be opened.
    pub async fn of(
        &self,
        bot: Bot,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Result<Bot, BotError> {
        Ok(match self {
            Self::Sqlite { path } => bot.store(SqliteStore::open(path).await?),
            Self::Shared { server, url, prefix } => on_server!(server, url, prefix, store => {
                let coordinator = store.coordinator().settings(settings).replica_id(replica);
                bot.store(store).coordination(Coordination::new(coordinator.build()?))
            }),
        })
    }

    /// Gives a bot that is alone this store, and kills the process at the call with this number.
    ///
    /// # Errors
    /// When the store cannot be opened.
    pub async fn deadly(&self, bot: Bot, at: usize) -> Result<Bot, BotError> {
        let points = CrashPoints::at(at);
        let deadly = CrashingStore::new(self.open().await?, points.clone());
        tokio::spawn(async move {
            points.crashed().await;
            // As `kill -9`: nothing is flushed, closed or dropped.
            std::process::abort();
        });
        Ok(bot.store(deadly))
    }

    /// What was given up.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>> {
        let store = self.open().await?;
        let inbox = store.inbox().context("the store has no inbox")?;
        Ok(inbox.dead_letters(None, LETTERS).await?)
    }

    async fn open(&self) -> Result<Arc<dyn botmesh_core::store::Store>, StoreError> {
        Ok(match self {
            Self::Sqlite { path } => Arc::new(SqliteStore::open(path).await?),
            Self::Shared { server, url, prefix } => {
                on_server!(server, url, prefix, store => Arc::new(store))
            }
        })
    }
}
