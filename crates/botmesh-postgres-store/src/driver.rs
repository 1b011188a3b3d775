use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_sql::{Dialect, Driver, DriverError, Finish, Row, Statement, Transaction, Value};
use sqlx::{AssertSqlSafe, Executor as _};
use tokio::time::Instant;

use crate::connections::{Connections, Lent};
use crate::failure::Failure;
use crate::protocol::{self, Bind, Protocol};
use crate::server::{DOES_NOT_WAIT, NOT_DURABLE, WAITS};

/// The name of the store.
pub(crate) const NAME: &str = "postgres";

/// The shortest and the longest pause before a statement is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How long one statement of a migration may take, and the wait for a migration that another
/// replica has begun.
const MIGRATION: Duration = Duration::from_secs(60);

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
pub(crate) struct PostgresDriver {
    pub(crate) connections: Arc<Connections>,
    /// Whether what was written survives the server's end, as it was when it was last examined.
    pub(crate) durable: Arc<AtomicBool>,
}

impl PostgresDriver {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, durable: Arc::default() }
    }

    /// Runs a statement, and repeats it while the server is away.
    pub(crate) async fn insist(
        &self,
        repeat: Repeat,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Failure> {
        let (response, values) = (self.connections.settings().response, values.into());
        self.patiently(repeat, || self.attempt_within(response, statement, &values)).await
    }

    async fn patiently<T, F>(&self, repeat: Repeat, attempt: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let deadline = Instant::now() + self.connections.settings().patience;
        let mut pause = PAUSES.0;
        loop {
            let failure = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if failure.is_pooled() {
                self.connections.stop_preparing();
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

    /// Sends a statement once, and waits for its answer so long. A caller that gives up meanwhile
    /// costs no connection: the answer is waited for without it.
    pub(crate) async fn attempt_within(
        &self,
        response: Duration,
        statement: &Statement,
        values: &Arc<[Value]>,
    ) -> Result<Vec<Row>, Failure> {
        let protocol = self.connections.protocol().await?;
        let mut lent = self.connections.lend().await?;
        let (driver, statement, values) = (self.clone(), statement.clone(), Arc::clone(values));
        let answer = Finish::new(async move {
            driver.run(&mut lent, protocol, &statement, &values, response).await
        });
        answer.await
    }

    /// The same with values that are only borrowed, for a caller that does not give up.
    #[cfg(any(feature = "coordination", feature = "durability"))]
    pub(crate) async fn attempt_with<V: Bind>(
        &self,
        response: Duration,
        statement: &Statement,
        values: &[V],
    ) -> Result<Vec<Row>, Failure> {
        let protocol = self.connections.protocol().await?;
        let mut lent = self.connections.lend().await?;
        self.run(&mut lent, protocol, statement, values, response).await
    }

    async fn run<V: Bind>(
        &self,
        lent: &mut Lent,
        protocol: Protocol,
        statement: &Statement,
        values: &[V],
        limit: Duration,
    ) -> Result<Vec<Row>, Failure> {
        lent.begin();
        let connection = lent.connection().map_err(Failure::unsent)?;
        let running = protocol::run(connection, protocol, statement, values);
        let failure = match tokio::time::timeout(limit, running).await {
            Ok(Ok(rows)) => {
                lent.end();
                return Ok(rows);
            }
            Ok(Err(error)) => Failure::sent(error),
            Err(_) => Failure::silent(limit, true),
        };
        if failure.needs_another_connection() {
            self.connections.doubt();
        } else {
            lent.end();
        }
        Err(failure)
    }

    async fn open_transaction(&self) -> Result<PostgresTransaction, Failure> {
        let mut lent = self.connections.lend().await?;
        lent.begin();
        let mut transaction = PostgresTransaction { driver: self.clone(), lent };
        transaction.command("BEGIN").await?;
        let names = &self.connections.settings().names;
        // Until the end of the transaction, so it also works through a pooler.
        let lock = format!("SELECT pg_advisory_xact_lock(hashtextextended('botmesh {names}', 0))");
        transaction.command(&lock).await?;
        if let Some(schema) = names.schema() {
            let exists = format!("SELECT 1 FROM pg_namespace WHERE nspname = '{schema}'");
            if transaction.command(&exists).await? == 0 {
                transaction.command(&format!("CREATE SCHEMA \"{schema}\"")).await?;
            }
        }
        Ok(transaction)
    }
}

#[async_trait]
impl Driver for PostgresDriver {
    fn store(&self) -> &'static str {
        NAME
    }

    fn dialect(&self) -> Dialect {
        Dialect::POSTGRES
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
        self.insist(Repeat::Freely, statement, values).await.map_err(Failure::into_error)
    }

    async fn write(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        self.insist(Repeat::IfNotExecuted, statement, values).await.map_err(Failure::into_error)
    }

    async fn dangers(&self) -> Result<Vec<String>, DriverError> {
        let waits = Dialect::POSTGRES.statement(WAITS, &self.connections.settings().names);
        let rows = self.read(&waits, Vec::new()).await?;
        let waits = rows.into_iter().next().map_or(Ok(0), |mut row| row.integer())? != 0;
        let dangers = [(!self.is_durable(), NOT_DURABLE), (!waits, DOES_NOT_WAIT)];
        Ok(dangers.into_iter().filter(|(is, _)| *is).map(|(_, danger)| danger.to_owned()).collect())
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, DriverError> {
        let begun = self.patiently(Repeat::Freely, || self.open_transaction()).await;
        Ok(Box::new(begun.map_err(Failure::into_error)?))
    }
}

/// A transaction for migrations. Its connection is closed when it is dropped before its end, which
/// rolls it back.
struct PostgresTransaction {
    driver: PostgresDriver,
    lent: Lent,
}

impl PostgresTransaction {
    /// Runs a command of our own, and answers how many rows it gave.
    async fn command(&mut self, text: &str) -> Result<usize, Failure> {
        let connection = self.lent.connection().map_err(Failure::unsent)?;
        let running = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text.to_owned())));
        match tokio::time::timeout(MIGRATION, running).await {
            Ok(Ok(rows)) => Ok(rows.len()),
            Ok(Err(error)) => Err(Failure::sent(error)),
            Err(_) => Err(Failure::silent(MIGRATION, true)),
        }
    }
}

#[async_trait]
impl Transaction for PostgresTransaction {
    async fn run(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        let driver = self.driver.clone();
        let ran = driver.run(&mut self.lent, Protocol::Plain, statement, &values, MIGRATION).await;
        // Whatever came of it, the transaction is still open.
        self.lent.begin();
        ran.map_err(Failure::into_error)
    }

    async fn commit(mut self: Box<Self>) -> Result<(), DriverError> {
        self.command("COMMIT").await.map_err(Failure::into_error)?;
        self.lent.end();
        Ok(())
    }
}
