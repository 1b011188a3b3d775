use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_sql::{Answer, Dialect, Driver, DriverError, Row, Statement, Transaction, Value};
use tokio::time::Instant;

use crate::connections::{Connections, Lent};
use crate::failure::Failure;
use crate::migration::Migration;
use crate::protocol;

/// The name of the store.
pub(crate) const NAME: &str = "mysql";

/// The shortest and the longest pause before a statement is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How often a statement is run that others hinder, each time undoing it.
const CONTENDED: u32 = 10;

/// Whether a statement may be sent again when its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It only reads.
    Freely,
    /// It may have written.
    IfNotExecuted,
}

/// Runs the statements of a store.
#[derive(Debug, Clone)]
pub(crate) struct MysqlDriver {
    pub(crate) connections: Arc<Connections>,
    /// Whether what was written survives the server's end, as it was when it was last examined.
    pub(crate) durable: Arc<AtomicBool>,
}

impl MysqlDriver {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, durable: Arc::default() }
    }

    /// Runs a statement, and repeats it while the server is away.
    pub(crate) async fn insist(
        &self,
        repeat: Repeat,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.patiently(repeat, || self.attempt(statement, values)).await
    }

    async fn patiently<T, F>(&self, repeat: Repeat, attempt: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let begun = Instant::now();
        let deadline = begun + self.connections.settings().patience;
        let mut pause = PAUSES.0;
        let mut hindered = 0;
        loop {
            let failure = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if failure.is_contention() {
                hindered += 1;
                if hindered >= CONTENDED || Instant::now() + pause >= deadline {
                    return Err(Failure::occupied(begun.elapsed()));
                }
            }
            let repeatable = repeat == Repeat::Freely || failure.is_unexecuted();
            if !failure.is_transient() || !repeatable || Instant::now() + pause >= deadline {
                return Err(failure);
            }
            tracing::debug!(?failure, ?pause, "the server is away, trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn attempt(&self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let response = self.connections.settings().response;
        self.attempt_within(response, statement, values).await
    }

    /// Sends a statement once, and waits for its answer so long.
    pub(crate) async fn attempt_within(
        &self,
        response: Duration,
        statement: &Statement,
        values: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        let mut lent = self.connections.lend().await?;
        self.run(&mut lent, statement, values, response).await
    }

    async fn run(
        &self,
        lent: &mut Lent,
        statement: &Statement,
        values: &[Value],
        limit: Duration,
    ) -> Result<Vec<Row>, Failure> {
        lent.begin();
        let connection = lent.connection().map_err(Failure::unsent)?;
        let running = protocol::run(connection, statement, values);
        let failure = match tokio::time::timeout(limit, running).await {
            Ok(Ok(rows)) => {
                lent.end();
                return Ok(rows);
            }
            Ok(Err(error)) => Failure::sent(error),
            Err(_) => Failure::silent(limit, true),
        };
        // One whose transaction failed half-way may still be in it.
        if failure.needs_another_connection() || *statement.answer() != Answer::Rows {
            self.connections.doubt();
        } else {
            lent.end();
        }
        Err(failure)
    }
}

#[async_trait]
impl Driver for MysqlDriver {
    fn store(&self) -> &'static str {
        NAME
    }

    fn dialect(&self) -> Dialect {
        Dialect::MYSQL
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        self.durable.load(Ordering::Relaxed)
    }

    async fn read(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        self.insist(Repeat::Freely, statement, &values).await.map_err(Failure::into_error)
    }

    async fn write(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        self.insist(Repeat::IfNotExecuted, statement, &values).await.map_err(Failure::into_error)
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, DriverError> {
        let begun =
            self.patiently(Repeat::Freely, || Migration::begin(self.connections.settings())).await;
        Ok(Box::new(begun.map_err(Failure::into_error)?))
    }
}
