use std::sync::Arc;

use botmesh_core::coordination::client::{BackendError, PushSink};
use botmesh_core::coordination::stored::StoredLedger;
use botmesh_core::coordination::transition::{Limits, Operation, Outcome, Reply};
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::ledger::Rows;

/// The rows of a coordinator, where their connections live, and whom to tell of grants.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) ledger: Arc<StoredLedger<Rows>>,
    pub(super) limits: Limits,
    /// Who can be told of its own grants, and how.
    own: Mutex<Option<(IncarnationId, PushSink)>>,
    /// Where the connections live.
    home: Mutex<Option<Handle>>,
}

impl Turns {
    pub(super) fn new(rows: Rows, limits: Limits) -> Self {
        let ledger = Arc::new(StoredLedger::new(rows));
        Self { ledger, limits, own: Mutex::default(), home: Mutex::default() }
    }

    pub(super) fn rows(&self) -> &Rows {
        self.ledger.store()
    }

    /// Connections live on the caller's runtime from now on.
    pub(super) fn settle_here(&self) {
        *self.home.lock() = Some(Handle::current());
    }

    /// The runtime on which connections live, if it was settled.
    pub(super) fn home(&self) -> Option<Handle> {
        self.home.lock().clone()
    }

    /// Grants of this incarnation are told to it from now on.
    pub(super) fn tell(&self, own: IncarnationId, pushes: PushSink) {
        *self.own.lock() = Some((own, pushes));
    }

    /// Nobody is told of grants any more.
    pub(super) fn tell_nobody(&self) {
        self.own.lock().take();
    }

    /// Executes an operation on rows whose connections live on the runtime `home`.
    pub(super) async fn execute(
        &self,
        operation: &Operation,
        ledger: &Arc<StoredLedger<Rows>>,
        home: Option<Handle>,
    ) -> Result<Reply, BackendError> {
        let outcome = match elsewhere(home) {
            None => ledger.execute(operation, &self.limits).await?,
            Some(home) => {
                let (operation, limits) = (operation.clone(), self.limits.clone());
                let ledger = Arc::clone(ledger);
                let executing =
                    home.spawn(async move { ledger.execute(&operation, &limits).await });
                executing.await.map_err(|ended| BackendError::Unknown(Box::new(ended)))??
            }
        };
        Ok(self.reply(outcome))
    }

    /// Does `work` where the connections live.
    #[cfg(feature = "durability")]
    pub(super) async fn at_home<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        match elsewhere(self.home()) {
            None => work.await,
            Some(home) => {
                home.spawn(work).await.map_err(|ended| BackendError::Unknown(Box::new(ended)))?
            }
        }
    }

    /// The answer of what was executed. Of this replica's tickets that wait one may be the next, which
    /// is told; others have to poll.
    pub(super) fn reply(&self, outcome: Outcome) -> Reply {
        if let Some(wakeup) = outcome.wakeup {
            let own = self.own.lock().clone();
            if let Some((_, sink)) = own.filter(|(own, _)| *own == wakeup.ticket.incarnation) {
                sink.wake(wakeup);
            }
        }
        outcome.reply
    }
}

/// The runtime, unless it is the caller's: a connection lives on the runtime that opened it.
fn elsewhere(home: Option<Handle>) -> Option<Handle> {
    home.filter(|home| home.id() != Handle::current().id())
}
