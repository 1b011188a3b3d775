use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Backend, BackendError, PushSink};
use botmesh_core::coordination::stored::StoredLedger;
use botmesh_core::coordination::transition::{Limits, Operation, Reply};
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::ledger::Rows;
use super::schema::{RUN, Statements};
use super::turns::Turns;
use crate::connections::Connections;
use crate::driver::{MysqlDriver, NAME};
use crate::failure::Failure;
use crate::settings::Source;

/// How often keys that nobody remembers are removed.
const SWEEP: Duration = Duration::from_secs(30);

/// Carries the operations of a coordinator to its rows.
#[derive(Debug)]
pub(super) struct MysqlBackend {
    turns: Arc<Turns>,
    /// How long an answer may take before its connection counts as broken.
    response: Duration,
    /// Heartbeats only, so that they never wait behind turns, with the keeper's runtime.
    heartbeats: Mutex<Option<(Arc<StoredLedger<Rows>>, Handle)>>,
    swept: Mutex<Option<Instant>>,
    #[cfg(feature = "durability")]
    journal: Option<super::journal::Journal>,
}

impl MysqlBackend {
    pub(super) fn new(driver: MysqlDriver, limits: Limits, response: Duration) -> Self {
        let statements = Statements::new(&driver.connections.settings().names, RUN);
        Self::on(Rows::new(driver, statements, response), limits, response)
    }

    /// A backend on these rows.
    pub(super) fn on(rows: Rows, limits: Limits, response: Duration) -> Self {
        Self {
            turns: Arc::new(Turns::new(rows, limits)),
            response,
            heartbeats: Mutex::default(),
            swept: Mutex::default(),
            #[cfg(feature = "durability")]
            journal: None,
        }
    }

    /// Takes the steps of this store's inbox along.
    #[cfg(feature = "durability")]
    pub(super) fn journaling(mut self, store: Arc<botmesh_sql::SqlStore<MysqlDriver>>) -> Self {
        self.journal = Some(super::journal::Journal::new(store, Arc::clone(&self.turns)));
        self
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        self.turns.settle_here();
    }

    /// Closes the connections that are only this coordinator's, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.turns.tell_nobody();
        if let Some((heartbeats, _)) = self.heartbeats.lock().take() {
            heartbeats.store().driver().connections.close();
        }
    }

    /// The connection for heartbeats, made anew for each incarnation: it belongs to the runtime
    /// from which it is used.
    fn open_heartbeats(&self) -> Result<(), Failure> {
        let rows = self.turns.rows();
        let mut settings = rows.driver().connections.settings().clone();
        settings.source = Source::Options(Box::new(settings.options()));
        // One that is given up leaves its place to the next while it is being closed.
        settings.connections = 2;
        settings.response = self.response;
        let connections = Connections::new(settings)
            .map_err(|error| Failure::unsent(sqlx::Error::Configuration(error.into())))?;
        let rows = rows.over(MysqlDriver::new(Arc::new(connections)));
        let made = (Arc::new(StoredLedger::new(rows)), Handle::current());
        if let Some((before, _)) = self.heartbeats.lock().replace(made) {
            before.store().driver().connections.close();
        }
        Ok(())
    }

    /// Now and then removes the keys that nobody remembers, beside everything else.
    fn sweep_now_and_then(&self) {
        let Some(runtime) = self.turns.home() else { return };
        let now = Instant::now();
        {
            let mut swept = self.swept.lock();
            if swept.is_some_and(|swept| now - swept < SWEEP) {
                return;
            }
            *swept = Some(now);
        }
        let rows = self.turns.rows().clone();
        runtime.spawn(async move { rows.sweep().await });
    }
}

#[async_trait]
impl Backend for MysqlBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.turns.execute(operation, &self.turns.ledger, self.turns.home()).await
    }

    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let heartbeats = self.heartbeats.lock().clone();
        let Some((heartbeats, home)) = heartbeats else { return self.send(operation).await };
        let reply = self.turns.execute(operation, &heartbeats, Some(home)).await;
        if let Ok(Reply::Renewed) = reply {
            self.sweep_now_and_then();
        }
        reply
    }

    /// The server has no way to tell anybody anything by itself, so tickets poll.
    async fn listen(&self, own: &IncarnationId, pushes: PushSink) -> Result<(), BackendError> {
        // The keeper calls this first, on the thread where it renews.
        let rows = self.turns.rows();
        self.open_heartbeats().map_err(|failure| rows.explain(failure))?;
        pushes.disconnected();
        self.turns.tell(own.clone(), pushes);
        Ok(())
    }

    #[cfg(feature = "durability")]
    fn journal(&self) -> Option<&dyn botmesh_core::coordination::client::JournalBackend> {
        self.journal.as_ref().map(|journal| journal as _)
    }

    async fn close(&self) {
        self.abandon();
    }
}
