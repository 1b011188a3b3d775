use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Limits, Operation, Reply};
use botmesh_core::error::BoxError;
use botmesh_sql::{DriverError, Row, Statement, Value};

use super::batch::Batch;
use super::crowd::Crowd;
use super::schema::Statements;
use super::wire::{decode, encode};
use crate::driver::PostgresDriver;
use crate::failure::Failure;
use crate::protocol::Argument;

/// Executes operations at the server.
#[derive(Debug)]
pub(super) struct Calls {
    limits: Limits,
    statements: Statements,
    driver: PostgresDriver,
    /// How long an answer may take before its connection counts as broken.
    response: Duration,
    /// Whether it has worked before: then what is refused now may pass.
    has_worked: AtomicBool,
}

/// Why several operations have no answers.
pub(super) enum BatchError {
    /// The server undid all of it, which may be the fault of one operation.
    Undone,
    /// As for each of its operations.
    Failed(BackendError),
}

impl Calls {
    pub(super) fn new(driver: PostgresDriver, limits: Limits, response: Duration) -> Self {
        let statements = Statements::new(&driver.connections.settings().names);
        Self { limits, statements, driver, response, has_worked: AtomicBool::new(false) }
    }

    pub(super) const fn driver(&self) -> &PostgresDriver {
        &self.driver
    }

    pub(super) const fn response(&self) -> Duration {
        self.response
    }

    /// Executes one operation over the connections of `driver`. `channel` is where the wake-ups of
    /// a session that is registered go.
    pub(super) async fn one(
        &self,
        driver: &PostgresDriver,
        operation: &Operation,
        channel: &str,
    ) -> Result<Reply, BackendError> {
        let Some((statement, values)) = encode(operation, &self.limits, channel, &self.statements)
        else {
            return Err(BackendError::Unfit(format!("{} is not known", operation.name())));
        };
        let rows = driver.attempt_within(self.response, statement, &values.into()).await;
        let rows = rows.map_err(|failure| self.explain(failure))?;
        let reply = decode(rows).map_err(|error| BackendError::Unknown(Box::new(error)))?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(reply)
    }

    /// The values with which a function executes an operation.
    #[cfg(feature = "durability")]
    pub(super) fn values(&self, operation: &Operation) -> Result<Vec<Value>, BackendError> {
        let unknown = || BackendError::Unfit(format!("{} is not known", operation.name()));
        let call = encode(operation, &self.limits, "", &self.statements);
        call.map(|(_, values)| values).ok_or_else(unknown)
    }

    /// Tells of what was sent with operations and by somebody else.
    #[cfg(feature = "durability")]
    pub(super) fn explained(&self, answer: Result<Row, Failure>) -> Result<Row, BackendError> {
        let row = answer.map_err(|failure| self.explain(failure))?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(row)
    }

    /// Executes the operations of a batch in one statement. Those that have no answer were not
    /// executed: their key was not as it usually is.
    pub(super) async fn together<T: Sync>(
        &self,
        batch: &Batch<T>,
    ) -> Result<Vec<Option<Reply>>, BatchError> {
        let call = batch.call(&self.limits);
        let rows = self.of_several(&self.statements.batch, &call.arguments()).await?;
        batch.answers(rows).map_err(unreadable)
    }

    /// Executes the operations of a crowd, one after the other in one statement.
    pub(super) async fn in_turn<T: Sync>(
        &self,
        crowd: &Crowd<T>,
    ) -> Result<Vec<Reply>, BatchError> {
        let call = crowd.call(&self.limits);
        let rows = self.of_several(&self.statements.crowd, &call.arguments()).await?;
        crowd.answers(rows).map_err(unreadable)
    }

    async fn of_several(
        &self,
        statement: &Statement,
        values: &[Argument<'_>],
    ) -> Result<Vec<Row>, BatchError> {
        let ran = self.driver.attempt_with(self.response, statement, values).await;
        ran.map_err(|failure| {
            let undone = failure.is_answered();
            match (self.explain(failure), undone) {
                (BackendError::Refused(_), true) => BatchError::Undone,
                (error, _) => BatchError::Failed(error),
            }
        })
    }

    /// Removes some keys that nobody remembers, and answers how many.
    pub(super) async fn sweep(&self, most: i64) -> Result<i64, Failure> {
        let statement = &self.statements.sweep;
        let values = [Value::Integer(most)];
        let rows = self.driver.attempt_with(self.response, statement, &values).await?;
        // Without an answer there is nothing more to do.
        Ok(rows.into_iter().next().and_then(|mut row| row.integer().ok()).unwrap_or(0))
    }

    pub(super) fn explain(&self, failure: Failure) -> BackendError {
        if failure.is_pooled() {
            self.driver.connections.stop_preparing();
        }
        if failure.is_lasting()
            && !self.has_worked.load(Ordering::Relaxed)
            && let Some(reason) = failure.remedy()
        {
            return BackendError::Unfit(reason);
        }
        match failure.is_unexecuted() {
            true => BackendError::Refused(failure.into_source()),
            false => BackendError::Unknown(failure.into_source()),
        }
    }
}

/// It was executed, but nobody can read how: as good as no answer.
fn unreadable(error: DriverError) -> BatchError {
    BatchError::Failed(BackendError::Unknown(Box::new(error)))
}

/// The same error for each of several callers.
pub(super) fn repeat(error: BackendError) -> impl Fn() -> BackendError {
    type Source = Arc<dyn std::error::Error + Send + Sync>;
    let (make, source): (fn(BoxError) -> BackendError, Source) = match error {
        BackendError::Refused(source) => (BackendError::Refused, source.into()),
        BackendError::Unknown(source) => (BackendError::Unknown, source.into()),
        BackendError::Unfit(reason) => {
            (|reason| BackendError::Unfit(reason.to_string()), BoxError::from(reason).into())
        }
        other => (BackendError::Unknown, BoxError::from(other).into()),
    };
    move || make(Box::new(Arc::clone(&source)))
}
