use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_sql::{
    Dialect, Driver, DriverError, Fault, Finish, Row, Statement, Transaction, Value,
};
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
    /// How many bytes one request may have, as it was when the server was last examined.
    pub(crate) largest_request: Arc<AtomicUsize>,
}

/// What a request has beside its texts, at most.
const BESIDE_TEXTS: usize = 4096;

impl MysqlDriver {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        let largest_request = Arc::new(AtomicUsize::new(usize::MAX));
        Self { connections, durable: Arc::default(), largest_request }
    }

    /// Refuses values that the server would answer by ending the connection.
    fn check_size(&self, statement: &Statement, values: &[Value]) -> Result<(), DriverError> {
        let size = protocol::size(statement, values) + BESIDE_TEXTS;
        let largest = self.largest_request.load(Ordering::Relaxed);
        if size <= largest {
            return Ok(());
        }
        let reason = format!(
            "it needs a request of {size} bytes, more than {largest}: raise `max_allowed_packet` of the server"
        );
        Err(DriverError::new(Fault::Refused(reason), "a request is too large"))
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

    /// Sends a statement once, and waits for its answer so long. A caller that gives up meanwhile
    /// costs no connection: the answer is waited for without it.
    pub(crate) async fn attempt_within(
        &self,
        response: Duration,
        statement: &Statement,
        values: &Arc<[Value]>,
    ) -> Result<Vec<Row>, Failure> {
        let mut lent = self.connections.lend().await?;
        let (driver, statement, values) = (self.clone(), statement.clone(), Arc::clone(values));
        let answer =
            Finish::new(async move { driver.run(&mut lent, &statement, &values, response).await });
        answer.await
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
        let ran = tokio::time::timeout(limit, running).await;
        // One whose transaction failed half-way may still be in it.
        let is_in_transaction = !statement.before().is_empty();
        self.judge(lent, ran, limit, is_in_transaction)
    }

    /// Sends several statements at once, and waits for their answers so long, also without the
    /// caller.
    #[cfg(feature = "coordination")]
    pub(crate) async fn attempt_script(
        &self,
        response: Duration,
        script: &[(&Statement, &[Value])],
    ) -> Result<Vec<protocol::Told>, Failure> {
        let script = protocol::script(script);
        if script.len() >= self.largest_request.load(Ordering::Relaxed) {
            let too_large = "it is larger than `max_allowed_packet` of the server".to_owned();
            return Err(Failure::unsent(sqlx::Error::Protocol(too_large)));
        }
        let mut lent = self.connections.lend().await?;
        let driver = self.clone();
        let answers = Finish::new(async move {
            lent.begin();
            let connection = lent.connection().map_err(Failure::unsent)?;
            let running = protocol::run_script(connection, script);
            let ran = tokio::time::timeout(response, running).await;
            driver.judge(&mut lent, ran, response, true)
        });
        answers.await
    }

    /// As `attempt_script`, and again while others hinder it, so that the server undoes it as a whole.
    #[cfg(all(feature = "coordination", feature = "durability"))]
    pub(crate) async fn insist_on_script(
        &self,
        response: Duration,
        script: &[(&Statement, &[Value])],
    ) -> Result<Vec<protocol::Told>, Failure> {
        let mut pause = PAUSES.0;
        for _ in 1..CONTENDED {
            match self.attempt_script(response, script).await {
                Err(failure) if failure.is_contention() => tokio::time::sleep(pause).await,
                told => return told,
            }
            pause = (pause * 2).min(PAUSES.1);
        }
        self.attempt_script(response, script).await
    }

    /// Judges what came of a statement, and whether its connection can be used again.
    fn judge<T>(
        &self,
        lent: &mut Lent,
        ran: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
        limit: Duration,
        is_in_transaction: bool,
    ) -> Result<T, Failure> {
        let failure = match ran {
            Ok(Ok(told)) => {
                lent.end();
                return Ok(told);
            }
            Ok(Err(error)) => Failure::sent(error),
            Err(_) => Failure::silent(limit, true),
        };
        if failure.needs_another_connection() {
            self.connections.doubt();
        } else if !is_in_transaction {
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
        self.insist(Repeat::Freely, statement, values).await.map_err(Failure::into_error)
    }

    async fn write(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        self.check_size(statement, &values)?;
        self.insist(Repeat::IfNotExecuted, statement, values).await.map_err(Failure::into_error)
    }

    async fn dangers(&self) -> Result<Vec<String>, DriverError> {
        let danger = "the server does not wait for its disk (innodb_flush_log_at_trx_commit is not 1): \
            it may lose what was accepted in the last second when it stops";
        Ok(Vec::from_iter((!self.is_durable()).then(|| danger.to_owned())))
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, DriverError> {
        let begun =
            self.patiently(Repeat::Freely, || Migration::begin(self.connections.settings())).await;
        Ok(Box::new(begun.map_err(Failure::into_error)?))
    }
}
