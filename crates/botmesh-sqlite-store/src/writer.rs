use async_trait::async_trait;
use botmesh_sql::{DriverError, Fault, Row, Statement, Transaction, Value};
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use crate::connection::{self, Settings};
use crate::error::{Failure, Reach};

/// How many writes are committed together at most.
const BATCH: usize = 256;

/// What the writer is asked.
#[derive(Debug)]
pub(crate) enum Job {
    /// One statement.
    Write(Write),
    /// A transaction that has the connection for itself.
    Begin(oneshot::Sender<Result<Exclusive, DriverError>>),
    /// To close the file, and to say when that is done.
    Close(oneshot::Sender<()>),
}

/// A statement whose author waits.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) statement: Statement,
    pub(crate) values: Vec<Value>,
    pub(crate) reply: oneshot::Sender<Result<Vec<Row>, DriverError>>,
}

impl Write {
    fn answer(self, result: Result<Vec<Row>, DriverError>) {
        // Its author may have been cancelled meanwhile.
        let _ = self.reply.send(result);
    }
}

/// The one task that writes.
///
/// What has come in while it was busy is committed together: so a write alone waits for nobody,
/// and under load many share the price of one commit.
#[derive(Debug)]
pub(crate) struct Writer {
    settings: Settings,
    /// None after an error that made it useless, until the next job.
    connection: Option<SqliteConnection>,
    jobs: mpsc::Receiver<Job>,
}

impl Writer {
    pub(crate) fn new(
        settings: Settings,
        connection: SqliteConnection,
        jobs: mpsc::Receiver<Job>,
    ) -> Self {
        Self { settings, connection: Some(connection), jobs }
    }

    /// Works until the store is closed or gone.
    pub(crate) async fn run(mut self) {
        let mut jobs = Vec::with_capacity(BATCH);
        let mut closed = None;
        while closed.is_none() && self.jobs.recv_many(&mut jobs, BATCH).await > 0 {
            let mut writes = Vec::with_capacity(jobs.len());
            for job in jobs.drain(..) {
                match job {
                    Job::Write(write) if write.reply.is_closed() => {}
                    Job::Write(write) => writes.push(write),
                    Job::Begin(reply) => {
                        self.write_all(std::mem::take(&mut writes)).await;
                        self.lend(reply).await;
                    }
                    Job::Close(reply) => closed = Some(reply),
                }
            }
            self.write_all(writes).await;
        }
        if let Some(connection) = self.connection {
            // Closing only tidies up; what was confirmed is in the file.
            let _ = connection.close().await;
        }
        if let Some(closed) = closed {
            let _ = closed.send(());
        }
    }

    async fn write_all(&mut self, mut writes: Vec<Write>) {
        if writes.len() > 1 {
            writes = self.write_together(writes).await;
        }
        for mut write in writes {
            let values = std::mem::take(&mut write.values);
            let result = if write.statement.before().is_empty() {
                self.execute(&write.statement, values).await
            } else {
                self.execute_alone(&write.statement, values).await
            };
            write.answer(result.map_err(WriteError::into_error));
        }
    }

    /// Runs a statement and those before it in a transaction of their own.
    async fn execute_alone(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, WriteError> {
        self.control("BEGIN IMMEDIATE").await?;
        let ran = match self.execute_in_turn(statement, values).await {
            Ok(rows) => self.control("COMMIT").await.map(|()| rows),
            Err(error) => Err(error),
        };
        if ran.is_err() {
            self.roll_back().await;
        }
        ran
    }

    /// Runs a statement and those before it within a transaction.
    async fn execute_in_turn(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, WriteError> {
        let mut rows = Vec::new();
        for step in statement.before() {
            rows.extend(self.execute(step, values.clone()).await?);
        }
        rows.extend(self.execute(statement, values).await?);
        Ok(rows)
    }

    /// Commits all writes in one transaction. A statement that fails alone fails alone; when the
    /// whole fails without having been applied, the writes are given back, to be tried one by one.
    async fn write_together(&mut self, writes: Vec<Write>) -> Vec<Write> {
        if let Err(error) = self.control("BEGIN IMMEDIATE").await {
            Self::fail_all(writes, &error);
            return Vec::new();
        }
        let mut results = Vec::with_capacity(writes.len());
        for write in &writes {
            let ran = self.execute_in_turn(&write.statement, write.values.clone()).await;
            // One that follows others must not fail without them.
            let is_alone = write.statement.before().is_empty();
            match ran {
                Err(error) if error.reach() > Reach::Statement || !is_alone => {
                    self.roll_back().await;
                    return writes;
                }
                result => results.push(result.map_err(WriteError::into_error)),
            }
        }
        if let Err(error) = self.control("COMMIT").await {
            self.roll_back().await;
            if error.is_full() {
                return writes;
            }
            Self::fail_all(writes, &error);
            return Vec::new();
        }
        for (write, result) in writes.into_iter().zip(results) {
            write.answer(result);
        }
        Vec::new()
    }

    fn fail_all(writes: Vec<Write>, error: &WriteError) {
        for write in writes {
            write.answer(Err(error.copy()));
        }
    }

    /// Gives the connection away for one transaction.
    async fn lend(&mut self, reply: oneshot::Sender<Result<Exclusive, DriverError>>) {
        if let Err(error) = self.control("BEGIN IMMEDIATE").await {
            let _ = reply.send(Err(error.into_error()));
            return;
        }
        let Some(connection) = self.connection.take() else { return };
        let (give_back, returned) = oneshot::channel();
        let settings = self.settings.clone();
        let lent = Exclusive { settings, connection: Some(connection), give_back: Some(give_back) };
        // Whoever does not take it drops it, and dropping gives it back.
        let _ = reply.send(Ok(lent));
        if let Ok(returned) = returned.await {
            self.connection = Some(returned.connection);
            if !returned.committed {
                self.roll_back().await;
            }
        }
    }

    /// Ends whatever transaction there is. Often SQLite has done so itself.
    async fn roll_back(&mut self) {
        if let Some(connection) = &mut self.connection
            && let Err(error) = sqlx::raw_sql("ROLLBACK").execute(connection).await
            && Failure::new(error, &self.settings).reach > Reach::Statement
        {
            self.connection = None;
        }
    }

    /// Runs a statement that begins or ends a transaction.
    async fn control(&mut self, statement: &'static str) -> Result<(), WriteError> {
        let connection = self.connected().await.map_err(WriteError::Connect)?;
        match sqlx::raw_sql(statement).execute(connection).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, WriteError> {
        let connection = self.connected().await.map_err(WriteError::Connect)?;
        match connection::run(connection, statement, values).await {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn connected(&mut self) -> Result<&mut SqliteConnection, DriverError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.settings.reconnect().await?,
        };
        Ok(self.connection.insert(connection))
    }

    fn failed(&mut self, error: sqlx::Error) -> WriteError {
        let failure = Failure::new(error, &self.settings);
        if failure.reach == Reach::Connection {
            self.connection = None;
        }
        WriteError::Run(failure)
    }
}

/// Why the writer could not do a part of its work.
#[derive(Debug)]
enum WriteError {
    Connect(DriverError),
    Run(Failure),
}

impl WriteError {
    const fn reach(&self) -> Reach {
        match self {
            Self::Connect(_) => Reach::Connection,
            Self::Run(failure) => failure.reach,
        }
    }

    fn is_full(&self) -> bool {
        matches!(self, Self::Run(failure) if *failure.fault() == Fault::Full)
    }

    fn into_error(self) -> DriverError {
        match self {
            Self::Connect(error) => error,
            Self::Run(failure) => failure.into_error(),
        }
    }

    fn copy(&self) -> DriverError {
        match self {
            Self::Connect(error) => DriverError::new(error.fault().clone(), error.to_string()),
            Self::Run(failure) => failure.copy(),
        }
    }
}

/// The connection within a transaction, and back to the writer when it is dropped.
#[derive(Debug)]
pub(crate) struct Exclusive {
    settings: Settings,
    connection: Option<SqliteConnection>,
    give_back: Option<oneshot::Sender<Returned>>,
}

#[derive(Debug)]
struct Returned {
    connection: SqliteConnection,
    committed: bool,
}

impl Exclusive {
    fn give_back(&mut self, committed: bool) {
        if let (Some(connection), Some(give_back)) = (self.connection.take(), self.give_back.take())
        {
            let _ = give_back.send(Returned { connection, committed });
        }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, DriverError> {
        let gone = || DriverError::new(Fault::Other, "the transaction has ended");
        self.connection.as_mut().ok_or_else(gone)
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.give_back(false);
    }
}

#[async_trait]
impl Transaction for Exclusive {
    async fn run(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        let result = connection::run(self.connection()?, statement, values).await;
        result.map_err(|error| Failure::new(error, &self.settings).into_error())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), DriverError> {
        let result = sqlx::raw_sql("COMMIT").execute(self.connection()?).await;
        self.give_back(result.is_ok());
        result.map(drop).map_err(|error| Failure::new(error, &self.settings).into_error())
    }
}
