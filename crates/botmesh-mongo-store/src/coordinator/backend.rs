use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use botmesh_core::coordination::client::{Backend, BackendError, PushSink};
use botmesh_core::coordination::stored::StoredLedger;
#[cfg(test)]
use botmesh_core::coordination::transition::TicketId;
use botmesh_core::coordination::transition::{Limits, Operation, Outcome, Reply, Wakeup};
use botmesh_core::id::IncarnationId;
use mongodb::Database;
use mongodb::bson::{doc, oid::ObjectId};
use mongodb::options::WriteConcern;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::doubts::{Doubt, Doubts};
use super::ear::{Ear, Hearing};
use super::repeats::Repeats;
use super::rows::{Rows, explain, unsent};
use super::schema::WAKEUPS;
use super::wire;
use crate::MongoStore;
use crate::connections::Connections;
use crate::failure::{Failure, NAME};
use crate::settings::Source;

/// Heartbeats, one that is given up while the next begins, and the one that listens.
const CONNECTIONS: u32 = 3;

/// Carries the operations of a coordinator to the rows.
#[derive(Debug, Clone)]
pub(super) struct MongoBackend {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    /// Turns.
    ledger: StoredLedger<Rows>,
    /// Heartbeats only, so that they never wait behind turns, with the keeper's runtime.
    heartbeats: Mutex<Option<(Arc<StoredLedger<Rows>>, Handle)>>,
    doubts: Doubts,
    ear: Ear,
    /// Where this incarnation's own wake-ups go.
    own: Mutex<Option<(IncarnationId, PushSink)>>,
    repeats: Repeats,
    /// Where the turns' connections live.
    runtime: Mutex<Option<Handle>>,
    /// Whether it has worked before: then what is refused now may pass.
    has_worked: AtomicBool,
}

impl MongoBackend {
    pub(super) fn new(store: MongoStore, limits: Limits, response: Duration) -> Self {
        let inner = Inner {
            limits,
            ledger: StoredLedger::new(Rows::new(store, response)),
            heartbeats: Mutex::default(),
            doubts: Doubts::default(),
            ear: Ear::default(),
            own: Mutex::default(),
            repeats: Repeats::default(),
            runtime: Mutex::default(),
            has_worked: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        *self.inner.runtime.lock() = Some(Handle::current());
    }

    /// Closes the connections that are only this coordinator's, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.inner.ear.close();
        // The last handle of a client ends its connections.
        self.inner.heartbeats.lock().take();
        self.inner.own.lock().take();
    }

    pub(super) fn rows(&self) -> &Rows {
        self.inner.ledger.store()
    }

    /// The connections for heartbeats, made anew for each incarnation: they belong to the runtime
    /// from which they are used. A client of the program is shared instead.
    async fn open_heartbeats(&self) -> Result<Database, Failure> {
        let rows = self.rows();
        let mut settings = rows.store.connections().settings().clone();
        let store = match &mut settings.source {
            Source::Shared(_) => rows.store.clone(),
            Source::Address(_) => {
                settings.connections = CONNECTIONS;
                settings.response = rows.response;
                settings.patience = settings.patience.min(rows.response);
                MongoStore::new(Connections::new(settings))
            }
        };
        let database = store.connections().database().await?;
        let ledger = Arc::new(StoredLedger::new(rows.over(store)));
        *self.inner.heartbeats.lock() = Some((ledger, Handle::current()));
        Ok(database)
    }

    /// Decides one operation, and tells nobody.
    #[cfg(test)]
    pub(super) async fn decide(&self, operation: &Operation) -> Result<Outcome, BackendError> {
        Arc::clone(&self.inner).execute(operation.clone(), None).await
    }

    /// A reservation of this ticket was lost on its way.
    #[cfg(test)]
    pub(super) fn doubt(&self, ticket: &TicketId) {
        let _lost = self.inner.doubts.begin(ticket);
    }

    async fn execute(
        &self,
        operation: &Operation,
        ledger: Option<Arc<StoredLedger<Rows>>>,
        home: Option<Handle>,
    ) -> Result<Reply, BackendError> {
        let executing = Arc::clone(&self.inner).execute(operation.clone(), ledger);
        let outcome = match home.filter(|home| home.id() != Handle::current().id()) {
            None => executing.await,
            // A connection lives on the runtime that opened it.
            Some(home) => {
                let ended = |ended| Err(BackendError::Unknown(Box::new(ended)));
                home.spawn(executing).await.unwrap_or_else(ended)
            }
        };
        let Outcome { reply, wakeup } = outcome.map_err(|error| self.explain(error))?;
        self.inner.has_worked.store(true, Ordering::Relaxed);
        if let Some(wakeup) = wakeup {
            self.inner.wake(wakeup);
        }
        Ok(reply)
    }

    fn explain(&self, error: BackendError) -> BackendError {
        let (BackendError::Refused(source) | BackendError::Unknown(source)) = &error else {
            return error;
        };
        if self.inner.has_worked.load(Ordering::Relaxed) {
            return error;
        }
        // What does not pass by itself, unless it did so before.
        let driver = source.downcast_ref::<mongodb::error::Error>();
        match driver.and_then(|driver| Failure::new(driver.clone()).remedy()) {
            Some(reason) => BackendError::Unfit(reason),
            None => error,
        }
    }
}

impl Inner {
    async fn execute(
        self: Arc<Self>,
        operation: Operation,
        ledger: Option<Arc<StoredLedger<Rows>>>,
    ) -> Result<Outcome, BackendError> {
        let (rows, limits) = (self.ledger.store(), &self.limits);
        let by_function = || self.ledger.execute(&operation, limits);
        match &operation {
            Operation::Reserve { key, ticket, epoch }
            | Operation::Attempt { key, ticket, epoch } => {
                let queues = matches!(operation, Operation::Reserve { .. });
                if rows.known.welcomes(ticket, *epoch) {
                    let under_way = self.doubts.begin(ticket);
                    let decided = rows.reserve(key, ticket, queues, limits).await;
                    if !matches!(decided, Err(BackendError::Unknown(_))) {
                        under_way.answered();
                    }
                    if let Some(outcome) = decided? {
                        return Ok(outcome);
                    }
                }
                by_function().await
            }
            Operation::Release { key, ticket } => {
                let doubt = self.doubts.of(ticket);
                if doubt == Some(Doubt::Open) {
                    rows.refuse(key, ticket, limits).await?;
                    self.doubts.note(ticket);
                }
                let outcome = match rows.release(key, ticket, limits).await? {
                    Some(outcome) => outcome,
                    None => by_function().await?,
                };
                if doubt.is_some() {
                    self.doubts.settle(ticket);
                }
                Ok(outcome)
            }
            Operation::Touch { key, ticket } if rows.keep(key, ticket, limits).await? => {
                Ok(Reply::Touched.into())
            }
            Operation::Register { incarnation, .. } => {
                self.doubts.begin_anew(incarnation);
                by_function().await
            }
            operation => ledger.as_deref().unwrap_or(&self.ledger).execute(operation, limits).await,
        }
    }

    /// Tells whoever was granted a key, beside everything else: it is a hint.
    fn wake(self: &Arc<Self>, wakeup: Wakeup) {
        if let Some((incarnation, sink)) = &*self.own.lock()
            && *incarnation == wakeup.ticket.incarnation
        {
            sink.wake(wakeup);
            return;
        }
        // Each poll finds the same grant anew.
        if !self.repeats.is_new(&wakeup, Instant::now()) {
            return;
        }
        let home = self.runtime.lock().clone().unwrap_or_else(Handle::current);
        let inner = Arc::clone(self);
        home.spawn(async move {
            if let Err(error) = inner.tell(&wakeup).await {
                tracing::debug!(%error, "somebody was not woken, and finds its turn by a poll");
            }
        });
    }

    async fn tell(&self, wakeup: &Wakeup) -> Result<(), BackendError> {
        let rows = self.ledger.store();
        let told = rows.store.connections().collection(WAKEUPS).await.map_err(unsent)?;
        let telling = told
            .update_one(
                doc! { "_id": ObjectId::new() },
                vec![doc! { "$set": wire::write_wakeup(wakeup) }],
            )
            .upsert(true)
            .write_concern(WriteConcern::nodes(1));
        rows.run(telling.into_future()).await.map(drop).map_err(explain)
    }
}

#[async_trait]
impl Backend for MongoBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let home = self.inner.runtime.lock().clone();
        self.execute(operation, None, home).await
    }

    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let heartbeats = self.inner.heartbeats.lock().clone();
        let Some((ledger, home)) = heartbeats else { return self.send(operation).await };
        self.execute(operation, Some(ledger), Some(home)).await
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
    ) -> Result<(), BackendError> {
        // The keeper calls this first, on the thread where it renews.
        let database = self.open_heartbeats().await;
        let database = database.map_err(|failure| self.explain(unsent(failure)))?;
        *self.inner.own.lock() = Some((incarnation.clone(), pushes.clone()));
        let rows = self.rows();
        let prefix = &rows.store.connections().settings().prefix;
        let hearing = Hearing {
            collection: database.collection(&prefix.collection(WAKEUPS)),
            incarnation: incarnation.clone(),
            sink: pushes,
            response: rows.response,
        };
        let listening = self.inner.ear.listen(hearing).await;
        listening.map_err(|failure| self.explain(unsent(failure)))
    }

    async fn close(&self) {
        self.abandon();
    }
}
