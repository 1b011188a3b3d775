use std::fmt::Debug;

use async_trait::async_trait;

use crate::dialect::Dialect;
use crate::error::DriverError;
use crate::statement::Statement;
use crate::value::{Row, Value};

/// A backend's connections, as [`SqlStore`](crate::SqlStore) uses them.
///
/// A driver reconnects by itself and classifies its errors. It repeats a statement only if it
/// knows that it was not applied.
#[async_trait]
pub trait Driver: Debug + Send + Sync + 'static {
    /// The name of the store.
    fn store(&self) -> &'static str;

    /// The backend's SQL.
    fn dialect(&self) -> Dialect;

    /// Whether several machines see the same data.
    fn is_shared(&self) -> bool;

    /// Whether what was written survives the process.
    fn is_durable(&self) -> bool;

    /// Runs a statement that only reads. It sees every write that was answered before.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn read(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError>;

    /// Runs a statement that writes, and those [before](Statement::before) it, atomically: all is
    /// applied and as durable as the store promises when this returns, or nothing is applied. The
    /// rows are what they return.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn write(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError>;

    /// What about the backend endangers what it was given, in sentences for the operator.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn dangers(&self) -> Result<Vec<String>, DriverError> {
        Ok(Vec::new())
    }

    /// Begins a transaction that excludes all other writers, for migrations.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn begin(&self) -> Result<Box<dyn Transaction>, DriverError>;
}

/// A transaction; dropped without [`commit`](Self::commit) it is rolled back.
#[async_trait]
pub trait Transaction: Send {
    /// Runs a statement.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn run(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError>;

    /// Makes it last.
    ///
    /// # Errors
    /// [`DriverError`].
    async fn commit(self: Box<Self>) -> Result<(), DriverError>;
}
