use std::sync::Arc;

use async_trait::async_trait;

use super::faults::CoordinationFaults;
use super::hub::MemoryCoordinationHub;
use crate::coordination::client::{Arrival, BackendError, Departure, JournalBackend};
use crate::coordination::transition::{Limits, Operation, Reply};
use crate::store::{
    Admission, Begun, Commit, Committed, InboxStore, NewRecord, Realm, Store, StoreError,
};

/// The inbox of a store and a hub, which pass for one backend. It does one step after the other,
/// so whatever is lost in between is lost as it never is at a server.
#[derive(Debug)]
pub(super) struct MemoryJournal {
    store: Arc<dyn Store>,
    realm: Realm,
    hub: MemoryCoordinationHub,
    limits: Limits,
    faults: CoordinationFaults,
}

impl MemoryJournal {
    /// None when the store has no inbox, or one of no realm.
    pub(super) fn new(
        store: Arc<dyn Store>,
        hub: MemoryCoordinationHub,
        limits: Limits,
        faults: CoordinationFaults,
    ) -> Option<Self> {
        let realm = store.inbox()?.realm()?.clone();
        Some(Self { store, realm, hub, limits, faults })
    }

    fn inbox(&self) -> Result<&dyn InboxStore, BackendError> {
        self.store.inbox().ok_or_else(|| BackendError::Unfit("the store has no inbox".into()))
    }

    fn execute(&self, operation: &Operation) -> Reply {
        self.hub.execute(operation, &self.limits).reply
    }
}

fn failed(error: StoreError) -> BackendError {
    BackendError::Unknown(error.into())
}

#[async_trait]
impl JournalBackend for MemoryJournal {
    fn realm(&self) -> &Realm {
        &self.realm
    }

    async fn ingest(
        &self,
        record: NewRecord<'_>,
        reserve: &Operation,
    ) -> Result<Arrival, BackendError> {
        let ingest = async {
            let inbox = self.inbox()?;
            let admission = inbox.admit(record).await.map_err(failed)?;
            let Admission::New { is_behind, .. } = admission else {
                return Ok(Arrival { admission, reply: None, is_begun: false });
            };
            let reply = self.execute(reserve);
            let is_begun = match &reply {
                Reply::Granted(grant) if !is_behind => {
                    let begun = inbox.begin(record.chat, grant.fence, record.lease).await;
                    matches!(begun.map_err(failed)?, Begun::Record(_))
                }
                _ => false,
            };
            Ok(Arrival { admission, reply: Some(reply), is_begun })
        };
        self.faults.carry(ingest).await
    }

    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError> {
        let end = async {
            let committed = self.inbox()?.commit(commit).await.map_err(failed)?;
            let is_done = matches!(committed, Committed::Applied(_));
            let reply = is_done.then(|| self.execute(release));
            Ok(Departure { committed, reply })
        };
        self.faults.carry(end).await
    }
}
