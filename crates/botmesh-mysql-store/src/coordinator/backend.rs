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
use crate::connections::Connections;
use crate::driver::{MysqlDriver, NAME};
use crate::failure::Failure;
use crate::settings::Source;

/// How often keys that nobody remembers are removed.
const SWEEP: Duration = Duration::from_secs(30);

/// Carries the operations of a coordinator to its rows.
#[derive(Debug)]
pub(super) struct MysqlBackend {
    limits: Limits,
    /// Turns.
    turns: Arc<StoredLedger<Rows>>,
    /// How long an answer may take before its connection counts as broken.
    response: Duration,
    /// Heartbeats only, so that they never wait behind turns, with the keeper's runtime.
    heartbeats: Mutex<Option<(Arc<StoredLedger<Rows>>, Handle)>>,
    /// Who can be told of its own grants, and how.
    own: Mutex<Option<(IncarnationId, PushSink)>>,
    /// Where the turns' connections live.
    runtime: Mutex<Option<Handle>>,
    swept: Mutex<Option<Instant>>,
}

impl MysqlBackend {
    pub(super) fn new(driver: MysqlDriver, limits: Limits, response: Duration) -> Self {
        let statements = Statements::new(&driver.connections.settings().names, RUN);
        Self::on(Rows::new(driver, statements, response), limits, response)
    }

    /// A backend on these rows.
    pub(super) fn on(rows: Rows, limits: Limits, response: Duration) -> Self {
        Self {
            limits,
            turns: Arc::new(StoredLedger::new(rows)),
            response,
            heartbeats: Mutex::default(),
            own: Mutex::default(),
            runtime: Mutex::default(),
            swept: Mutex::default(),
        }
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        *self.runtime.lock() = Some(Handle::current());
    }

    /// Closes the connections that are only this coordinator's, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.own.lock().take();
        if let Some((heartbeats, _)) = self.heartbeats.lock().take() {
            heartbeats.store().driver().connections.close();
        }
    }

    async fn execute(
        &self,
        operation: &Operation,
        ledger: Arc<StoredLedger<Rows>>,
        home: Option<Handle>,
    ) -> Result<Reply, BackendError> {
        let outcome = match home.filter(|home| home.id() != Handle::current().id()) {
            None => ledger.execute(operation, &self.limits).await?,
            // A connection lives on the runtime that opened it.
            Some(home) => {
                let (operation, limits) = (operation.clone(), self.limits.clone());
                let executing =
                    home.spawn(async move { ledger.execute(&operation, &limits).await });
                executing.await.map_err(|ended| BackendError::Unknown(Box::new(ended)))??
            }
        };
        if let Some(wakeup) = outcome.wakeup {
            // Of this replica's tickets that wait one may be the next. Others have to poll.
            let own = self.own.lock().clone();
            if let Some((_, sink)) = own.filter(|(own, _)| *own == wakeup.ticket.incarnation) {
                sink.wake(wakeup);
            }
        }
        Ok(outcome.reply)
    }

    /// The connection for heartbeats, made anew for each incarnation: it belongs to the runtime
    /// from which it is used.
    fn open_heartbeats(&self) -> Result<(), Failure> {
        let rows = self.turns.store();
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
        let Some(runtime) = self.runtime.lock().clone() else { return };
        let now = Instant::now();
        {
            let mut swept = self.swept.lock();
            if swept.is_some_and(|swept| now - swept < SWEEP) {
                return;
            }
            *swept = Some(now);
        }
        let rows = self.turns.store().clone();
        runtime.spawn(async move { rows.sweep().await });
    }
}

#[async_trait]
impl Backend for MysqlBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let home = self.runtime.lock().clone();
        self.execute(operation, Arc::clone(&self.turns), home).await
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

    /// The server has no way to tell anybody anything by itself, so tickets poll.
    async fn listen(&self, own: &IncarnationId, pushes: PushSink) -> Result<(), BackendError> {
        // The keeper calls this first, on the thread where it renews.
        let rows = self.turns.store();
        self.open_heartbeats().map_err(|failure| rows.explain(failure))?;
        pushes.disconnected();
        *self.own.lock() = Some((own.clone(), pushes));
        Ok(())
    }

    async fn close(&self) {
        self.abandon();
    }
}
