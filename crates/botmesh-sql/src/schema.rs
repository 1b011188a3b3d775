use botmesh_core::store::StoreError;

use crate::dialect::Dialect;
use crate::driver::{Driver, Transaction};
use crate::prefix::TablePrefix;
use crate::value::Value;

/// What makes the schema of each version out of the one before. Released ones never change.
const MIGRATIONS: &[&[&str]] = &[&[
    "INSERT INTO {p}meta (name, value) VALUES ('floor', 0) ON CONFLICT DO NOTHING",
    "CREATE TABLE {p}documents (
        collection {name} NOT NULL,
        name {name} NOT NULL,
        revision {integer} NOT NULL,
        body {text},
        ends_at {integer},
        PRIMARY KEY (collection, name)
    )",
    "CREATE INDEX {p}documents_ends ON {p}documents (ends_at) WHERE ends_at IS NOT NULL",
    "CREATE TABLE {p}checkpoints (
        chat {name} NOT NULL PRIMARY KEY,
        revision {integer} NOT NULL,
        fence {integer} NOT NULL,
        prior_fence {integer},
        body {text},
        wake_at {integer},
        ends_at {integer}
    )",
    "CREATE INDEX {p}checkpoints_wake ON {p}checkpoints (wake_at) WHERE wake_at IS NOT NULL",
    "CREATE INDEX {p}checkpoints_ends ON {p}checkpoints (ends_at) WHERE ends_at IS NOT NULL",
    "CREATE TABLE {p}locks (
        name {name} NOT NULL PRIMARY KEY,
        fence {integer} NOT NULL,
        token {text},
        ends_at {integer} NOT NULL
    )",
    "CREATE INDEX {p}locks_ends ON {p}locks (ends_at)",
]];

const CREATE_META: &str = "CREATE TABLE IF NOT EXISTS {p}meta
    (name {name} NOT NULL PRIMARY KEY, value {integer} NOT NULL)";
const READ_VERSION: &str = "SELECT value FROM {p}meta WHERE name = 'schema'";
const WRITE_VERSION: &str = "INSERT INTO {p}meta (name, value) VALUES ('schema', {1})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The version that this code knows.
const SUPPORTED: u64 = MIGRATIONS.len() as u64;

/// Creates the schema or brings it to this version, in one transaction.
pub(crate) async fn prepare(driver: &dyn Driver, prefix: &TablePrefix) -> Result<(), StoreError> {
    const OPERATION: &str = "prepare";
    let store = driver.store();
    let of_store = |error: crate::DriverError| error.into_store_error(store, OPERATION);
    let begun = driver.begin().await.map_err(of_store)?;
    let mut schema = Schema { transaction: begun, dialect: driver.dialect(), prefix };
    schema.run(CREATE_META, Vec::new()).await.map_err(of_store)?;
    let found = schema.version().await.map_err(of_store)?;
    if found > SUPPORTED {
        return Err(StoreError::NewerSchema { store, found, supported: SUPPORTED });
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(found as usize) {
        for statement in *migration {
            schema.run(statement, Vec::new()).await.map_err(of_store)?;
        }
        schema.run(WRITE_VERSION, vec![Value::Integer(version)]).await.map_err(of_store)?;
        tracing::info!(store, prefix = %prefix, version, "schema migrated");
    }
    schema.transaction.commit().await.map_err(of_store)
}

struct Schema<'a> {
    transaction: Box<dyn Transaction>,
    dialect: Dialect,
    prefix: &'a TablePrefix,
}

impl Schema<'_> {
    async fn run(
        &mut self,
        template: &str,
        values: Vec<Value>,
    ) -> Result<Vec<crate::Row>, crate::DriverError> {
        let statement = self.dialect.statement(template, self.prefix);
        self.transaction.run(&statement, values).await
    }

    async fn version(&mut self) -> Result<u64, crate::DriverError> {
        let row = self.run(READ_VERSION, Vec::new()).await?.pop();
        row.map_or(Ok(0), |mut row| row.number())
    }
}
