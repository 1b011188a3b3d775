use botmesh_core::store::StoreError;

use crate::dialect::Dialect;
use crate::driver::{Driver, Transaction};
use crate::error::{DriverError, Fault};
use crate::prefix::TablePrefix;
use crate::value::{Row, Value};
use crate::write::{Tells, Upsert};

/// A part of the schema with a version of its own.
#[derive(Debug)]
pub struct Part {
    /// Its name, under which its version is kept.
    pub name: &'static str,
    /// The templates of the statements that make each version out of the one before. Released ones
    /// never change. In MySQL each may be run again after a crash.
    pub versions: &'static [&'static [&'static str]],
}

/// The tables of the store in PostgreSQL and SQLite.
pub(crate) const STORE: Part = Part { name: "schema", versions: TABLES };

const TABLES: &[&[&str]] = &[&[
    "INSERT INTO {p}meta (name, value) VALUES ('floor', 0) ON CONFLICT DO NOTHING",
    "CREATE TABLE {p}documents (
        collection {name} NOT NULL,
        name {name} NOT NULL,
        revision {integer} NOT NULL,
        body {text},
        ends_at {integer},
        PRIMARY KEY (collection, name)
    )",
    "CREATE INDEX {index}documents_ends ON {p}documents (ends_at) WHERE ends_at IS NOT NULL",
    "CREATE TABLE {p}checkpoints (
        chat {name} NOT NULL PRIMARY KEY,
        revision {integer} NOT NULL,
        fence {integer} NOT NULL,
        prior_fence {integer},
        body {text},
        wake_at {integer},
        ends_at {integer}
    )",
    "CREATE INDEX {index}checkpoints_wake ON {p}checkpoints (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX {index}checkpoints_ends ON {p}checkpoints (ends_at) WHERE ends_at IS NOT NULL",
    "CREATE TABLE {p}locks (
        name {name} NOT NULL PRIMARY KEY,
        fence {integer} NOT NULL,
        token {text},
        ends_at {integer} NOT NULL
    )",
    "CREATE INDEX {index}locks_ends ON {p}locks (ends_at)",
]];

/// The tables of the store in MySQL, where a definition of tables cannot be undone: each statement
/// may be run again. A key of the index on `documents` may have 3,072 bytes.
pub(crate) const STORE_IN_MYSQL: Part = Part { name: "schema", versions: TABLES_IN_MYSQL };

const TABLES_IN_MYSQL: &[&[&str]] = &[&[
    "INSERT INTO {p}meta (name, value) VALUES ('floor', 0) ON DUPLICATE KEY UPDATE value = value",
    "CREATE TABLE IF NOT EXISTS {p}documents (
        collection VARBINARY(64) NOT NULL,
        name {name} NOT NULL,
        revision {integer} NOT NULL,
        body {text},
        ends_at {integer},
        decided TINYINT,
        PRIMARY KEY (collection, name),
        INDEX documents_ends (ends_at)
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS {p}checkpoints (
        chat {name} NOT NULL PRIMARY KEY,
        revision {integer} NOT NULL,
        fence {integer} NOT NULL,
        prior_fence {integer},
        body {text},
        wake_at {integer},
        ends_at {integer},
        decided TINYINT,
        INDEX checkpoints_wake (wake_at),
        INDEX checkpoints_ends (ends_at)
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    "CREATE TABLE IF NOT EXISTS {p}locks (
        name {name} NOT NULL PRIMARY KEY,
        fence {integer} NOT NULL,
        token {text},
        ends_at {integer} NOT NULL,
        decided TINYINT,
        INDEX locks_ends (ends_at)
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
]];

const CREATE_META: &str = "CREATE TABLE IF NOT EXISTS {p}meta
    (name {name} NOT NULL PRIMARY KEY, value {integer} NOT NULL)";
const READ_VERSION: &str = "SELECT value FROM {p}meta WHERE name = {1}";
const WRITE_VERSION: Upsert<'_> = Upsert {
    table: "meta",
    key: &["name"],
    insert: &[("name", "{1}"), ("value", "{2}")],
    from: None,
    only_if: None,
    change: &[("value", "{new value}")],
    tells: Tells::Nothing,
};

/// Creates a part of the schema or brings it to this version, in one transaction, or where the
/// backend has none for that, step by step while nobody else does it. One that has this version
/// already is only looked at, which needs no right to create anything.
///
/// # Errors
/// [`StoreError::NewerSchema`] for one that a newer release made, otherwise what the driver says.
pub async fn migrate(
    driver: &dyn Driver,
    prefix: &TablePrefix,
    part: &Part,
) -> Result<(), StoreError> {
    const OPERATION: &str = "prepare";
    let store = driver.store();
    let of_store = |error: DriverError| error.into_store_error(store, OPERATION);
    let dialect = driver.dialect();
    let read_version = dialect.statement(READ_VERSION, prefix);
    let supported = part.versions.len() as u64;
    let name = || vec![Value::from(part.name)];
    let present = match driver.read(&read_version, name()).await {
        Ok(rows) => Some(version(rows).map_err(of_store)?),
        // There may be no table yet.
        Err(error) if *error.fault() == Fault::Other => None,
        Err(error) => return Err(of_store(error)),
    };
    if present == Some(supported) {
        return Ok(());
    }
    let begun = driver.begin().await.map_err(of_store)?;
    let mut schema = Schema { transaction: begun, dialect, prefix };
    schema.run(CREATE_META, Vec::new()).await.map_err(of_store)?;
    let rows = schema.run(READ_VERSION, name()).await.map_err(of_store)?;
    let found = version(rows).map_err(of_store)?;
    if found > supported {
        return Err(StoreError::NewerSchema { store, found, supported });
    }
    for (version, migration) in (1_i64..).zip(part.versions).skip(found as usize) {
        for statement in *migration {
            schema.run(statement, Vec::new()).await.map_err(of_store)?;
        }
        let values = vec![part.name.into(), Value::Integer(version)];
        let write_version = WRITE_VERSION.statement(&dialect, prefix);
        schema.transaction.run(&write_version, values).await.map_err(of_store)?;
        tracing::info!(store, prefix = %prefix, part = part.name, version, "schema migrated");
    }
    schema.transaction.commit().await.map_err(of_store)
}

fn version(rows: Vec<Row>) -> Result<u64, DriverError> {
    rows.into_iter().next().map_or(Ok(0), |mut row| row.number())
}

struct Schema<'a> {
    transaction: Box<dyn Transaction>,
    dialect: Dialect,
    prefix: &'a TablePrefix,
}

impl Schema<'_> {
    async fn run(&mut self, template: &str, values: Vec<Value>) -> Result<Vec<Row>, DriverError> {
        let statement = self.dialect.statement(template, self.prefix);
        self.transaction.run(&statement, values).await
    }
}
