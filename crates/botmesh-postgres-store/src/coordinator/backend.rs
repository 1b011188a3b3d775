use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Backend, BackendError, PushSink};
use botmesh_core::coordination::transition::{Limits, Operation, Reply};
use botmesh_core::id::IncarnationId;
use botmesh_sql::Value;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::ear::{Ear, Hearing};
use super::schema::Statements;
use super::wire::{decode, encode};
use crate::connections::Connections;
use crate::driver::{NAME, PostgresDriver};
use crate::failure::Failure;
use crate::protocol::Protocol;
use crate::settings::{Pooler, Source};

/// How often keys that nobody remembers are removed.
const SWEEP: Duration = Duration::from_secs(30);
/// How many of them at a time.
const BATCH: i64 = 1_000;

/// Carries the operations of a coordinator to the functions.
#[derive(Debug)]
pub(super) struct PostgresBackend {
    limits: Limits,
    statements: Arc<Statements>,
    /// Turns.
    driver: PostgresDriver,
    /// Where a connection that listens is opened; none where there can be no such one.
    direct: Option<Box<Options>>,
    /// How long an answer may take before its connection counts as broken.
    response: Duration,
    /// Heartbeats only, so that they never wait behind turns, with the keeper's runtime.
    heartbeats: Mutex<Option<(PostgresDriver, Handle)>>,
    ear: Ear,
    /// The incarnation that listens, and where.
    channel: Mutex<Option<(IncarnationId, String)>>,
    /// Where the turns' connections live.
    runtime: Mutex<Option<Handle>>,
    swept: Mutex<Option<Instant>>,
    /// Whether it has worked before: then what is refused now may pass.
    has_worked: AtomicBool,
}

/// Connection options, whose own debug output shows the password.
pub(super) struct Options(pub(super) PgConnectOptions);

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Options").field(&self.0.get_host()).field(&self.0.get_port()).finish()
    }
}

impl PostgresBackend {
    pub(super) fn new(
        driver: PostgresDriver,
        direct: Option<PgConnectOptions>,
        limits: Limits,
        response: Duration,
    ) -> Self {
        Self {
            limits,
            statements: Arc::new(Statements::new(&driver.connections.settings().names)),
            driver,
            direct: direct.map(|options| Box::new(Options(options))),
            response,
            heartbeats: Mutex::default(),
            ear: Ear::default(),
            channel: Mutex::default(),
            runtime: Mutex::default(),
            swept: Mutex::default(),
            has_worked: AtomicBool::new(false),
        }
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        *self.runtime.lock() = Some(Handle::current());
    }

    /// Closes the connections that are only this coordinator's, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.ear.close();
        if let Some((heartbeats, _)) = self.heartbeats.lock().take() {
            heartbeats.connections.close();
        }
    }

    async fn execute(
        &self,
        operation: &Operation,
        driver: PostgresDriver,
        home: Option<Handle>,
    ) -> Result<Reply, BackendError> {
        let channel = self.channel_of(operation);
        let Some((statement, values)) = encode(operation, &self.limits, &channel, &self.statements)
        else {
            return Err(BackendError::Unfit(format!("{} is not known", operation.name())));
        };
        let answered = match home.filter(|home| home.id() != Handle::current().id()) {
            None => driver.attempt_within(self.response, statement, &values).await,
            // A connection lives on the runtime that opened it.
            Some(home) => {
                let (response, statement) = (self.response, statement.clone());
                let attempt =
                    async move { driver.attempt_within(response, &statement, &values).await };
                let ended = |_| Err(Failure::sent(sqlx::Error::WorkerCrashed));
                home.spawn(attempt).await.unwrap_or_else(ended)
            }
        };
        let rows = answered.map_err(|failure| self.explain(failure))?;
        let reply = decode(rows).map_err(|error| BackendError::Unknown(Box::new(error)))?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(reply)
    }

    /// Where the wake-ups of an incarnation that is registered go; nowhere if nobody listens.
    fn channel_of(&self, operation: &Operation) -> String {
        let Operation::Register { incarnation, .. } = operation else { return String::new() };
        match &*self.channel.lock() {
            Some((listening, channel)) if listening == incarnation => channel.clone(),
            _ => String::new(),
        }
    }

    fn explain(&self, failure: Failure) -> BackendError {
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

    /// The connection for heartbeats, made anew for each incarnation: it belongs to the runtime
    /// from which it is used.
    async fn open_heartbeats(&self) -> Result<(), Failure> {
        let shared = &self.driver.connections;
        let pooler = match shared.protocol().await? {
            Protocol::Prepared => Pooler::Absent,
            Protocol::Plain => Pooler::Present,
        };
        let mut settings = shared.settings().clone();
        settings.source = Source::Options(Box::new(settings.options()));
        settings.pooler = pooler;
        // One that is given up leaves its place to the next while it is being closed.
        settings.connections = 2;
        settings.response = self.response;
        let connections = Connections::new(settings)
            .map_err(|error| Failure::unsent(sqlx::Error::Configuration(error.into())))?;
        let driver = PostgresDriver::new(Arc::new(connections));
        let made = (driver, Handle::current());
        if let Some((before, _)) = self.heartbeats.lock().replace(made) {
            before.connections.close();
        }
        Ok(())
    }

    /// Now and then removes the keys that nobody remembers, beside everything else.
    fn sweep_now_and_then(&self) {
        let Some(runtime) = self.runtime.lock().clone() else { return };
        let now = Instant::now();
        {
            let mut swept = self.swept.lock();
            if swept.is_some_and(|swept| now - swept < SWEEP) {
                return;
            }
            *swept = Some(now);
        }
        let (driver, statements) = (self.driver.clone(), Arc::clone(&self.statements));
        let response = self.response;
        runtime.spawn(async move {
            loop {
                let values = [Value::Integer(BATCH)];
                let removed = driver.attempt_within(response, &statements.sweep, &values).await;
                let removed =
                    removed.map(|rows| rows.into_iter().next().map(|mut row| row.integer()));
                match removed {
                    Ok(Some(Ok(removed))) if removed >= BATCH => {}
                    Ok(_) => return,
                    Err(failure) => {
                        tracing::debug!(?failure, "keys that nobody remembers were not removed");
                        return;
                    }
                }
            }
        });
    }
}

#[async_trait]
impl Backend for PostgresBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let home = self.runtime.lock().clone();
        self.execute(operation, self.driver.clone(), home).await
    }

    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let heartbeats = self.heartbeats.lock().clone();
        let Some((heartbeats, home)) = heartbeats else { return self.send(operation).await };
        let reply = self.execute(operation, heartbeats, Some(home)).await;
        if let Ok(Reply::Renewed) = reply {
            self.sweep_now_and_then();
        }
        reply
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
    ) -> Result<(), BackendError> {
        // The keeper calls this first, on the thread where it renews.
        self.open_heartbeats().await.map_err(|failure| self.explain(failure))?;
        let protocol = self.driver.connections.protocol().await;
        let protocol = protocol.map_err(|failure| self.explain(failure))?;
        let options = match (&self.direct, protocol) {
            (Some(direct), _) => direct.0.clone(),
            (None, Protocol::Prepared) => self.driver.connections.settings().options(),
            // A pooler lends no connection for so long.
            (None, Protocol::Plain) => {
                self.channel.lock().take();
                pushes.disconnected();
                return Ok(());
            }
        };
        // So administrators know which connection is always idle.
        let name = format!("{} listens", options.get_application_name().unwrap_or("botmesh"));
        let options = options.application_name(&name);
        // Nobody else can guess it.
        let channel = format!("botmesh_{}", uuid::Uuid::new_v4().simple());
        *self.channel.lock() = Some((incarnation.clone(), channel.clone()));
        let hearing = Hearing {
            options,
            channel,
            incarnation: incarnation.clone(),
            sink: pushes,
            response: self.response,
            probe: self.response.max(Duration::from_secs(1)),
        };
        self.ear.listen(hearing).await.map_err(|failure| self.explain(failure))
    }

    async fn close(&self) {
        self.abandon();
    }
}
