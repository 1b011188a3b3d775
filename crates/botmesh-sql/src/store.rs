use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use botmesh_core::store::{
    ConditionalCheckpointStore, InboxStore, LockStore, Realm, Store, StoreError, Swap,
};
use botmesh_core::{Fence, Revision};

use crate::driver::Driver;
#[cfg(feature = "durability")]
use crate::inbox;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::value::{Row, Value};
use crate::{DriverError, checkpoint, document, lock, schema, sweep};

/// A store over a driver.
#[derive(Debug)]
pub struct SqlStore<D> {
    pub(crate) driver: D,
    prefix: TablePrefix,
    pub(crate) documents: document::Statements,
    pub(crate) checkpoints: checkpoint::Statements,
    pub(crate) locks: lock::Statements,
    #[cfg(feature = "durability")]
    pub(crate) inbox: inbox::Statements,
    pub(crate) realm: Realm,
    pub(crate) sweeps: Vec<sweep::Statements>,
    pub(crate) writes: AtomicU64,
}

impl<D: Driver> SqlStore<D> {
    /// A store whose tables' names begin with `prefix`.
    pub fn new(driver: D, prefix: TablePrefix) -> Self {
        let dialect = driver.dialect();
        Self {
            documents: document::Statements::new(&dialect, &prefix),
            checkpoints: checkpoint::Statements::new(&dialect, &prefix),
            locks: lock::Statements::new(&dialect, &prefix),
            #[cfg(feature = "durability")]
            inbox: inbox::Statements::new(&dialect, &prefix),
            realm: Realm::new(),
            sweeps: sweep::Statements::of_all_tables(dialect, &prefix),
            writes: AtomicU64::new(0),
            driver,
            prefix,
        }
    }

    /// What the names of the tables begin with.
    pub const fn prefix(&self) -> &TablePrefix {
        &self.prefix
    }

    /// What it shares with coordinators that take steps of its inbox along.
    pub const fn realm(&self) -> &Realm {
        &self.realm
    }

    /// The driver.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// Gives a driver's error the name of the store and of what was asked.
    pub(crate) fn named(&self, operation: &'static str) -> impl Fn(DriverError) -> StoreError {
        let store = self.driver.store();
        move |error| error.into_store_error(store, operation)
    }

    /// Runs a statement that gives one row at most.
    pub(crate) async fn read_row(
        &self,
        operation: &'static str,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        let rows = self.driver.read(statement, values).await.map_err(self.named(operation))?;
        Ok(rows.into_iter().next())
    }

    /// Runs a statement that writes one row at most, and now and then sweeps.
    pub(crate) async fn write_row(
        &self,
        operation: &'static str,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        let rows = self.driver.write(statement, values).await.map_err(self.named(operation))?;
        self.sweep_now_and_then().await;
        Ok(rows.into_iter().next())
    }

    /// Runs a conditional write: it was applied if it gives a row, whose revision comes first.
    pub(crate) async fn swap(
        &self,
        operation: &'static str,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Swap, StoreError> {
        match self.write_row(operation, statement, values).await? {
            None => Ok(Swap::Refused),
            Some(mut row) => {
                let revision = row.number().map_err(self.named(operation))?;
                Ok(Swap::Applied(Revision::new(revision)))
            }
        }
    }

    /// A text as a value, if every backend can hold it.
    pub(crate) fn text(&self, what: &'static str, text: &str) -> Result<Value, StoreError> {
        if !self.driver.dialect().keeps_nul() && text.contains('\0') {
            return Err(StoreError::Unfit {
                store: self.driver.store(),
                what,
                reason: "it contains a NUL character".to_owned(),
            });
        }
        Ok(text.into())
    }

    /// A key as a value, if the backend can hold it whole.
    pub(crate) fn key(&self, key: &str) -> Result<Value, StoreError> {
        match self.driver.dialect().longest_name {
            Some(longest) if key.len() > longest => Err(StoreError::Unfit {
                store: self.driver.store(),
                what: "key",
                reason: format!("it has {} bytes, at most {longest} are kept", key.len()),
            }),
            _ => self.text("key", key),
        }
    }

    /// A fence as a value.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] for one that is larger than a `BIGINT`.
    pub fn fence(&self, fence: Fence) -> Result<Value, StoreError> {
        let number = i64::try_from(fence.get()).map_err(|_| StoreError::Unfit {
            store: self.driver.store(),
            what: "fence",
            reason: format!("{fence} is larger than {}", i64::MAX),
        })?;
        Ok(Value::Integer(number))
    }

    /// A revision as a value; one that no row can have, if the number is none of ours.
    #[must_use]
    pub fn revision(revision: Revision) -> Value {
        Value::Integer(i64::try_from(revision.get()).unwrap_or(-1))
    }
}

#[async_trait]
impl<D: Driver> Store for SqlStore<D> {
    fn name(&self) -> &'static str {
        self.driver.store()
    }

    fn is_shared(&self) -> bool {
        self.driver.is_shared()
    }

    fn is_durable(&self) -> bool {
        self.driver.is_durable()
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        let dialect = self.driver.dialect();
        schema::migrate(&self.driver, &self.prefix, dialect.tables).await?;
        #[cfg(feature = "durability")]
        schema::migrate(&self.driver, &self.prefix, dialect.inbox).await?;
        Ok(())
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        Some(self)
    }

    #[cfg(feature = "durability")]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(self)
    }

    #[cfg(not(feature = "durability"))]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        None
    }
}
