use botmesh_sql::{SqlStore, forward_store};

use crate::driver::SqliteDriver;

/// A store in an SQLite file.
///
/// Opened by [`open`](Self::open) or through [`builder`](Self::builder). It has one connection
/// that writes, in a task of its own, and a few that read.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) sql: SqlStore<SqliteDriver>,
}

impl SqliteStore {
    /// Closes the file and returns when that is done. A store that is only dropped closes it a
    /// moment later; nothing is lost either way.
    pub async fn close(self) {
        self.sql.driver().close().await;
    }
}

forward_store!(SqliteStore, sql);
