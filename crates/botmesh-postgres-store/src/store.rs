use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use botmesh_core::store::{ConditionalCheckpointStore, InboxStore, LockStore, Store, StoreError};
use botmesh_sql::{Driver as _, SqlStore, forward_contracts};
use sqlx::PgPool;

use crate::PostgresStoreBuilder;
use crate::connections::Connections;
use crate::driver::{NAME, PostgresDriver};
use crate::server::{EXAMINE, ServerInfo};

/// A store in PostgreSQL.
///
/// Clones share its connections, which are opened when they are needed and again after they broke.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) sql: Arc<SqlStore<PostgresDriver>>,
    #[cfg(feature = "durability")]
    inbox: Arc<crate::inbox::PostgresInbox>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl PostgresStore {
    /// A store at a URL such as `postgres://user:password@localhost:5432/database?sslmode=require`.
    /// What the URL does not say is taken from the environment variables of PostgreSQL, such as
    /// `PGUSER` and `PGPASSFILE`.
    pub fn connect(url: impl AsRef<str>) -> PostgresStoreBuilder {
        PostgresStoreBuilder::at(url.as_ref())
    }

    /// A store over the connections of a pool that the program has already. Each of them costs a
    /// further round trip after its use, by which the pool tries it out.
    pub fn over(pool: PgPool) -> PostgresStoreBuilder {
        PostgresStoreBuilder::over(pool)
    }

    pub(crate) fn new(connections: Connections) -> Self {
        let names = connections.settings().names.clone();
        let driver = PostgresDriver::new(Arc::new(connections));
        let sql = Arc::new(SqlStore::new(driver, names));
        Self {
            #[cfg(feature = "durability")]
            inbox: Arc::new(crate::inbox::PostgresInbox::new(Arc::clone(&sql))),
            sql,
            warnings: Arc::default(),
        }
    }

    /// What is not as it should be at the server, found by the last [`prepare`](Store::prepare).
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the connections, for all clones. Those of a shared pool stay open.
    pub fn close(&self) {
        self.sql.driver().connections.close();
    }

    pub(crate) async fn examine(&self) -> Result<(), StoreError> {
        let driver = self.sql.driver();
        let statement = driver.dialect().statement(EXAMINE, self.sql.prefix());
        let told = driver.read(&statement, Vec::new()).await;
        let told = told.map_err(|error| error.into_store_error(NAME, "connecting"))?;
        let row = told.into_iter().next().ok_or_else(|| StoreError::Corrupt {
            store: NAME,
            what: "its settings",
            detail: "there are none".to_owned(),
        })?;
        let info =
            ServerInfo::read(row).map_err(|error| error.into_store_error(NAME, "connecting"))?;
        info.check()?;
        driver.durable.store(info.is_durable, Ordering::Relaxed);
        let warnings = Vec::from_iter(info.warning());
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
        Ok(())
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(self.sql.driver().connections.settings()).finish()
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        self.sql.name()
    }

    fn is_shared(&self) -> bool {
        self.sql.is_shared()
    }

    /// Whether the server waits for its disk (`fsync`), as the last [`prepare`](Store::prepare)
    /// found it; false before. With `synchronous_commit = off` a server that loses its power loses
    /// the last fraction of a second.
    fn is_durable(&self) -> bool {
        self.sql.is_durable()
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.examine().await?;
        self.sql.prepare().await?;
        #[cfg(feature = "durability")]
        crate::inbox::schema::prepare(&self.sql).await?;
        Ok(())
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        self.sql.conditional_checkpoints()
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        self.sql.locks()
    }

    #[cfg(feature = "durability")]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(&*self.inbox)
    }

    #[cfg(not(feature = "durability"))]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        None
    }
}

forward_contracts!(PostgresStore, sql);
