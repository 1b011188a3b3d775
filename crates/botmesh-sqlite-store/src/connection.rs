use std::path::PathBuf;
use std::time::Duration;

use botmesh_sql::{DriverError, Fault, Row, Statement, Value};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow, SqliteSynchronous};
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Decode, Row as _, Sqlite, SqliteConnection, TypeInfo,
    ValueRef,
};
use tokio::time::Instant;

use crate::Synchronous;
use crate::error::{Failure, gone, primary_code};

/// `SQLITE_BUSY`.
const BUSY: i32 = 5;

/// SQLite's default page.
const PAGE_BYTES: u64 = 4096;

/// How connections are opened.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// None: in memory.
    pub(crate) path: Option<PathBuf>,
    pub(crate) busy_timeout: Duration,
    pub(crate) synchronous: Synchronous,
    pub(crate) max_bytes: Option<u64>,
}

impl Settings {
    fn options(&self) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new()
            .busy_timeout(self.busy_timeout)
            .foreign_keys(false)
            .disable_statement_logging()
            .thread_name(|number| format!("botmesh-sqlite-{number}"));
        match &self.path {
            Some(path) => options.filename(path),
            None => options.filename(":memory:").in_memory(true),
        }
    }

    /// The options of a connection that reads.
    pub(crate) fn reading(&self) -> SqliteConnectOptions {
        self.options().pragma("query_only", "ON")
    }

    /// Opens the connection that writes, on a new file if there is none.
    pub(crate) async fn connect(&self) -> Result<SqliteConnection, DriverError> {
        let connection = self.try_connect().await;
        connection.map_err(|error| Failure::new(error, self).into_error())
    }

    /// Opens the connection that writes once more. A file that has gone is not replaced by an
    /// empty one.
    pub(crate) async fn reconnect(&self) -> Result<SqliteConnection, DriverError> {
        if let Some(path) = self.path.as_ref().filter(|path| !path.exists()) {
            return Err(DriverError::new(Fault::Refused(gone(path)), "no such file"));
        }
        self.connect().await
    }

    async fn try_connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        let mut options =
            self.options().create_if_missing(true).synchronous(match self.synchronous {
                Synchronous::Normal => SqliteSynchronous::Normal,
                Synchronous::Full => SqliteSynchronous::Full,
            });
        if let Some(bytes) = self.max_bytes {
            options = options.pragma("max_page_count", (bytes / PAGE_BYTES).max(1).to_string());
        }
        let mut connection = options.connect().await?;
        if self.path.is_some() {
            self.use_write_ahead_log(&mut connection).await?;
        }
        Ok(connection)
    }

    /// Changing the journal mode takes the whole file for a moment, for which SQLite does not
    /// wait by itself: so two processes that make a file at once would disturb each other.
    async fn use_write_ahead_log(
        &self,
        connection: &mut SqliteConnection,
    ) -> Result<(), sqlx::Error> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            // The limit keeps a log that a burst has made large from staying so.
            let set = "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 67108864";
            match sqlx::raw_sql(set).execute(&mut *connection).await {
                Ok(_) => return Ok(()),
                Err(error)
                    if primary_code(&error) == Some(BUSY)
                        && started.elapsed() < self.busy_timeout =>
                {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Runs one statement.
pub(crate) async fn run(
    connection: &mut SqliteConnection,
    statement: &Statement,
    values: Vec<Value>,
) -> Result<Vec<Row>, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Integer(integer) => arguments.add(integer),
            Value::Text(text) => arguments.add(text),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    let text = AssertSqlSafe(statement.text().clone());
    let rows = sqlx::query_with(text, arguments).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

fn read(row: &SqliteRow) -> Result<Row, sqlx::Error> {
    let column = |index: usize| {
        let value = row.try_get_raw(index)?;
        // The type of a NULL would be the declared type of its column.
        if value.is_null() {
            return Ok(Value::Null);
        }
        let decoded = if value.type_info().name() == "TEXT" {
            <String as Decode<'_, Sqlite>>::decode(value).map(Value::Text)
        } else {
            <i64 as Decode<'_, Sqlite>>::decode(value).map(Value::Integer)
        };
        decoded.map_err(|source| sqlx::Error::ColumnDecode { index: index.to_string(), source })
    };
    Ok(Row::new((0..row.len()).map(column).collect::<Result<_, sqlx::Error>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B7: a store that lost its connection does not go on with an empty file.
    #[tokio::test]
    async fn a_file_that_has_gone_is_not_replaced_by_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bot.db");
        let settings = Settings {
            path: Some(path.clone()),
            busy_timeout: Duration::from_secs(1),
            synchronous: Synchronous::Normal,
            max_bytes: None,
        };
        let error = settings.reconnect().await.unwrap_err();
        let Fault::Refused(reason) = error.fault() else { panic!("{error:?}") };
        assert!(reason.contains("bot.db has been removed or renamed: put it back"), "{reason}");
        assert!(!path.exists());
        settings.connect().await.unwrap();
        settings.reconnect().await.unwrap();
    }
}
