use async_trait::async_trait;
use botmesh_sql::{Dialect, Driver, DriverError, Fault, Row, Statement, Transaction, Value};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;
use tokio::sync::{mpsc, oneshot};

use crate::Synchronous;
use crate::connection::{self, Settings};
use crate::error::{Failure, Reach};
use crate::writer::{Job, Write, Writer};

/// How many connections read. Reads are short, and each connection is a thread.
const READERS: u32 = 2;

/// How many writes may wait; further callers wait for a place.
const QUEUE: usize = 1_024;

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct SqliteDriver {
    settings: Settings,
    jobs: mpsc::Sender<Job>,
    /// None in memory, where only one connection sees the data.
    readers: Option<SqlitePool>,
}

impl SqliteDriver {
    pub(crate) async fn open(settings: Settings) -> Result<Self, DriverError> {
        let connection = settings.connect().await?;
        let (sender, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(Writer::new(settings.clone(), connection, jobs).run());
        let readers = settings.path.is_some().then(|| {
            SqlitePoolOptions::new()
                .max_connections(READERS)
                .min_connections(0)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .acquire_timeout(settings.busy_timeout.max(std::time::Duration::from_secs(1)))
                .connect_lazy_with(settings.reading())
        });
        Ok(Self { settings, jobs: sender, readers })
    }

    /// Writes what waits, then closes the file. The writer's task ends by it; without it, when the
    /// driver is dropped.
    pub(crate) async fn close(&self) {
        let (closed, answer) = oneshot::channel();
        if self.jobs.send(Job::Close(closed)).await.is_ok() {
            // No answer comes from a writer that has ended already, which is all that is asked.
            let _ = answer.await;
        }
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
    }

    /// Gives the writer a job and waits for its answer.
    async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, DriverError>>) -> Job,
    ) -> Result<T, DriverError> {
        let stopped = || DriverError::new(Fault::Unavailable, "the writer has stopped");
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

#[async_trait]
impl Driver for SqliteDriver {
    fn store(&self) -> &'static str {
        "sqlite"
    }

    fn dialect(&self) -> Dialect {
        Dialect::SQLITE
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_durable(&self) -> bool {
        self.settings.path.is_some()
    }

    async fn read(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        let Some(readers) = &self.readers else { return self.write(statement, values).await };
        let failure = |error| Failure::new(error, &self.settings);
        let mut reader = readers.acquire().await.map_err(|error| failure(error).into_error())?;
        connection::run(&mut reader, statement, values).await.map_err(|error| {
            let failure = failure(error);
            if failure.reach == Reach::Connection {
                reader.close_on_drop();
            }
            failure.into_error()
        })
    }

    async fn write(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        let statement = statement.clone();
        self.ask(|reply| Job::Write(Write { statement, values, reply })).await
    }

    async fn dangers(&self) -> Result<Vec<String>, DriverError> {
        let danger = match (&self.settings.path, self.settings.synchronous) {
            (None, _) => "the database is in memory: what was accepted is gone with the process",
            (Some(_), Synchronous::Normal) => {
                "a power failure may lose what was accepted in the last moments: `Synchronous::Full` \
                waits for the disk"
            }
            (Some(_), Synchronous::Full) => return Ok(Vec::new()),
        };
        Ok(vec![danger.to_owned()])
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, DriverError> {
        let transaction = self.ask(Job::Begin).await?;
        Ok(Box::new(transaction))
    }
}
