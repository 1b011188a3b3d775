use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use botmesh_core::store::{Store, StoreError};
use botmesh_sql::{PrefixError, SqlStore, TablePrefix};

use crate::SqliteStore;
use crate::connection::Settings;
use crate::driver::SqliteDriver;

/// When a write is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Synchronous {
    /// When the operating system has it: it survives the end of the process, not always a power
    /// failure.
    #[default]
    Normal,
    /// When the disk has it.
    Full,
}

/// How a [`SqliteStore`] is opened.
///
/// ```
/// use std::time::Duration;
/// use botmesh_sqlite_store::{SqliteStore, Synchronous};
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("bots.db");
/// let store = SqliteStore::builder(path)
///     .prefix("shop_")?
///     .busy_timeout(Duration::from_secs(2))
///     .synchronous(Synchronous::Full)
///     .open()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SqliteStoreBuilder {
    prefix: TablePrefix,
    settings: Settings,
}

impl SqliteStoreBuilder {
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        // An absolute path is never read as a URI, and says more in messages.
        let path = path.map(|path| std::path::absolute(&path).unwrap_or(path));
        Self {
            prefix: TablePrefix::default(),
            settings: Settings {
                path,
                busy_timeout: Duration::from_secs(5),
                synchronous: Synchronous::default(),
                max_bytes: None,
            },
        }
    }

    /// What the names of the tables begin with, `botmesh_` by default. Bots with different
    /// prefixes share a file and never meet.
    ///
    /// # Errors
    /// [`PrefixError`] when it is no beginning of a table name.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, PrefixError> {
        self.prefix = TablePrefix::new(prefix)?;
        Ok(self)
    }

    /// How long an operation waits for another process that holds the file; 5 s by default.
    pub const fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.settings.busy_timeout = timeout;
        self
    }

    /// When a write is confirmed.
    pub const fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.settings.synchronous = synchronous;
        self
    }

    /// Lets the database grow to about this many bytes and no further, beside its write-ahead log:
    /// writes that need more fail with [`StoreError::Full`]. No limit by default.
    pub const fn max_bytes(mut self, bytes: u64) -> Self {
        self.settings.max_bytes = Some(bytes);
        self
    }

    /// Opens the file, creates it if it is not there, and brings its schema to this version.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a path that cannot be used, [`StoreError::NewerSchema`] for a
    /// file of a newer release, [`StoreError::Busy`] when another process holds it for too long.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        let driver = SqliteDriver::open(self.settings)
            .await
            .map_err(|error| error.into_store_error("sqlite", "open"))?;
        let store = SqliteStore { sql: Arc::new(SqlStore::new(driver, self.prefix)) };
        store.prepare().await?;
        Ok(store)
    }
}

impl SqliteStore {
    /// Opens the file at `path` with the default settings; see
    /// [`SqliteStoreBuilder::open`].
    ///
    /// # Errors
    /// As [`SqliteStoreBuilder::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder(path).open().await
    }

    /// The settings of a store in the file at `path`.
    pub fn builder(path: impl AsRef<Path>) -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(Some(path.as_ref().to_owned()))
    }

    /// The settings of a store in memory, which is gone when it is dropped.
    pub fn in_memory() -> SqliteStoreBuilder {
        SqliteStoreBuilder::new(None)
    }
}
