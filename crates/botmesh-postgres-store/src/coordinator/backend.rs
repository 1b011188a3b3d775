use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Backend, BackendError, PushSink};
use botmesh_core::coordination::transition::{Limits, Operation, Reply};
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::batch;
use super::calls::Calls;
use super::dispatcher::Dispatcher;
use super::ear::{Ear, Hearing};
use super::home::{Home, run_at};
use crate::connections::Connections;
use crate::driver::{NAME, PostgresDriver};
use crate::failure::Failure;
use crate::pooler::{self, Lending};
use crate::protocol::Protocol;
use crate::settings::{Pooler, Source};

/// How often keys that nobody remembers are removed.
const SWEEP: Duration = Duration::from_secs(30);
/// How many of them at a time.
const BATCH: i64 = 1_000;

const LEADS_TO_A_POOLER: &str = "the direct URL leads to a pooler that lends connections by transaction, through \
    which nothing can be listened to: give the URL of the server itself, or none, and tickets poll";

/// Carries the operations of a coordinator to the functions.
#[derive(Debug)]
pub(super) struct PostgresBackend {
    calls: Arc<Calls>,
    dispatcher: Arc<Dispatcher>,
    /// Where a connection that listens is opened; none where there can be no such one.
    direct: Option<Box<Options>>,
    /// Heartbeats only, so that they never wait behind turns, with the keeper's runtime.
    heartbeats: Mutex<Option<(PostgresDriver, Handle)>>,
    ear: Ear,
    /// The incarnation that listens, and where.
    channel: Mutex<Option<(IncarnationId, String)>>,
    home: Home,
    swept: Mutex<Option<Instant>>,
    #[cfg(feature = "durability")]
    journal: Option<super::journal::Journal>,
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
        let calls = Arc::new(Calls::new(driver, limits, response));
        Self {
            dispatcher: Arc::new(Dispatcher::new(Arc::clone(&calls))),
            calls,
            direct: direct.map(|options| Box::new(Options(options))),
            heartbeats: Mutex::default(),
            ear: Ear::default(),
            channel: Mutex::default(),
            home: Home::default(),
            swept: Mutex::default(),
            #[cfg(feature = "durability")]
            journal: None,
        }
    }

    /// Takes the steps of this store's inbox along.
    #[cfg(feature = "durability")]
    pub(super) fn journaling(mut self, store: Arc<botmesh_sql::SqlStore<PostgresDriver>>) -> Self {
        let (calls, home) = (Arc::clone(&self.calls), self.home.clone());
        self.journal = Some(super::journal::Journal::new(store, calls, home));
        self
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        self.home.settle_here();
    }

    /// Closes the connections that are only this coordinator's, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.ear.close();
        if let Some((heartbeats, _)) = self.heartbeats.lock().take() {
            heartbeats.connections.close();
        }
    }

    /// Executes one operation over connections that live on the runtime `home`.
    async fn execute(
        &self,
        operation: &Operation,
        driver: PostgresDriver,
        home: Handle,
    ) -> Result<Reply, BackendError> {
        let channel = self.channel_of(operation);
        let (calls, operation) = (Arc::clone(&self.calls), operation.clone());
        let executing = async move { calls.one(&driver, &operation, &channel).await };
        let executed = run_at(&home, executing).await;
        executed.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }

    /// Where the wake-ups of an incarnation that is registered go; nowhere if nobody listens.
    fn channel_of(&self, operation: &Operation) -> String {
        let Operation::Register { incarnation, .. } = operation else { return String::new() };
        match &*self.channel.lock() {
            Some((listening, channel)) if listening == incarnation => channel.clone(),
            _ => String::new(),
        }
    }

    /// Refuses a direct URL that leads to a pooler, where nothing would ever be heard. A server that
    /// does not answer is found out by whoever listens.
    async fn check(&self, direct: &Options) -> Result<(), BackendError> {
        let found = tokio::time::timeout(self.calls.response(), pooler::find(&direct.0)).await;
        match found {
            Ok(Ok(Lending::Transactions)) => Err(BackendError::Unfit(LEADS_TO_A_POOLER.to_owned())),
            _ => Ok(()),
        }
    }

    /// The connection for heartbeats, made anew for each incarnation: it belongs to the runtime
    /// from which it is used.
    async fn open_heartbeats(&self) -> Result<(), Failure> {
        let shared = &self.calls.driver().connections;
        let pooler = match shared.protocol().await? {
            Protocol::Prepared => Pooler::Absent,
            Protocol::Plain => Pooler::Present,
        };
        let mut settings = shared.settings().clone();
        settings.source = Source::Options(Box::new(settings.options()));
        settings.pooler = pooler;
        // One that is given up leaves its place to the next while it is being closed.
        settings.connections = 2;
        settings.response = self.calls.response();
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
        let Some(runtime) = self.home.settled() else { return };
        let now = Instant::now();
        {
            let mut swept = self.swept.lock();
            if swept.is_some_and(|swept| now - swept < SWEEP) {
                return;
            }
            *swept = Some(now);
        }
        let calls = Arc::clone(&self.calls);
        runtime.spawn(async move {
            loop {
                match calls.sweep(BATCH).await {
                    Ok(removed) if removed >= BATCH => {}
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
        match batch::is_common(operation) {
            true => self.dispatcher.send(operation, &self.home.handle()).await,
            false => self.execute(operation, self.calls.driver().clone(), self.home.handle()).await,
        }
    }

    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let heartbeats = self.heartbeats.lock().clone();
        let Some((heartbeats, home)) = heartbeats else { return self.send(operation).await };
        let reply = self.execute(operation, heartbeats, home).await;
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
        self.open_heartbeats().await.map_err(|failure| self.calls.explain(failure))?;
        let protocol = self.calls.driver().connections.protocol().await;
        let protocol = protocol.map_err(|failure| self.calls.explain(failure))?;
        let options = match (&self.direct, protocol) {
            (Some(direct), _) => {
                self.check(direct).await?;
                direct.0.clone()
            }
            (None, Protocol::Prepared) => self.calls.driver().connections.settings().options(),
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
            response: self.calls.response(),
            probe: self.calls.response().max(Duration::from_secs(1)),
        };
        self.ear.listen(hearing).await.map_err(|failure| self.calls.explain(failure))
    }

    #[cfg(feature = "durability")]
    fn journal(&self) -> Option<&dyn botmesh_core::coordination::client::JournalBackend> {
        self.journal.as_ref().map(|journal| journal as _)
    }

    async fn close(&self) {
        self.abandon();
    }
}
