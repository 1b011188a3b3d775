use std::sync::Arc;

use botmesh_sql::{SqlStore, forward_store};

use crate::driver::SqliteDriver;

/// A store in an SQLite file.
///
/// Opened by [`open`](Self::open) or through [`builder`](Self::builder). It has one connection
/// that writes, in a task of its own, and a few that read. Clones share them: give one to the bot
/// and keep one, for locks or to close it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) sql: Arc<SqlStore<SqliteDriver>>,
}

impl SqliteStore {
    /// Closes the file, for all clones, and returns when that is done. When the last clone is only
    /// dropped, the file is closed a moment later; nothing is lost either way.
    pub async fn close(self) {
        self.sql.driver().close().await;
    }
}

forward_store!(SqliteStore, sql);
