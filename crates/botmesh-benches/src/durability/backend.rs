//! The stores, each on a server or a file of the bench's own.

use std::sync::Arc;

use anyhow::{Result, bail};
use botmesh_core::Bot;
use botmesh_core::bot::Coordination;
use botmesh_core::store::Store;
use botmesh_postgres_store::PostgresStore;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;
use tempfile::TempDir;

use crate::coordination::{postgres, server};

/// Where messages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
    Redis,
}

impl Backend {
    pub(super) const ALL: [Self; 3] = [Self::Sqlite, Self::Postgres, Self::Redis];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    pub(super) fn named(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|backend| backend.name() == name) {
            Some(backend) => Ok(backend),
            None => bail!("there is no backend {name} here: choose sqlite, postgres or redis"),
        }
    }
}

/// A running server, or the directory of a file.
pub(super) enum Site {
    Sqlite(TempDir),
    Postgres(postgres::server::PrivateServer),
    Redis(server::PrivateServer),
}

impl Site {
    pub(super) async fn start(backend: Backend) -> Result<Self> {
        Ok(match backend {
            Backend::Sqlite => Self::Sqlite(tempfile::tempdir()?),
            Backend::Postgres => Self::Postgres(postgres::server::PrivateServer::start().await?),
            Backend::Redis => Self::Redis(server::PrivateServer::start_logged()?),
        })
    }

    /// The address of a PostgreSQL that answers when its disk has what it was told.
    pub(super) fn synchronous(server: &postgres::server::PrivateServer) -> String {
        format!("{}?options[synchronous_commit]=on", server.url())
    }

    /// Gives a bot its store, and with `coordinated` makes it one of several replicas.
    pub(super) async fn equip(&self, bot: Bot, coordinated: bool) -> Result<Bot> {
        Ok(match self {
            Self::Sqlite(directory) => bot.store(open_file(directory).await?),
            Self::Postgres(server) => {
                let store = open_postgres(server).await?;
                let coordinator = store.coordinator().build()?;
                let bot = bot.store(store);
                if coordinated { bot.coordination(Coordination::new(coordinator)) } else { bot }
            }
            Self::Redis(server) => {
                let store = open_redis(server).await?;
                let coordinator = store.coordinator().build()?;
                let bot = bot.store(store);
                if coordinated { bot.coordination(Coordination::new(coordinator)) } else { bot }
            }
        })
    }

    /// The store that the bots have.
    pub(super) async fn store(&self) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Sqlite(directory) => Arc::new(open_file(directory).await?),
            Self::Postgres(server) => Arc::new(open_postgres(server).await?),
            Self::Redis(server) => Arc::new(open_redis(server).await?),
        })
    }
}

async fn open_file(directory: &TempDir) -> Result<SqliteStore> {
    Ok(SqliteStore::open(directory.path().join("bench.db")).await?)
}

async fn open_postgres(server: &postgres::server::PrivateServer) -> Result<PostgresStore> {
    Ok(PostgresStore::connect(Site::synchronous(server)).prefix("bench_").await?)
}

async fn open_redis(server: &server::PrivateServer) -> Result<RedisStore> {
    Ok(RedisStore::connect(server.url()).prefix("bench").await?)
}
