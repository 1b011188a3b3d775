//! Turns that take the steps of an inbox along.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::CoordinatorClient;
use super::backend::{Backend, BackendError};
use super::shared::{Live, Phase, Shared, unavailable};
use crate::coordination::release::Claim;
use crate::coordination::transition::{Operation, Reply, TicketId, Wakeup};
use crate::coordination::{
    Begins, CoordinationError, CoordinationKey, IngestError, Ingested, JournaledTurns, LossReason,
    Release, Ticket, TurnGuard,
};
use crate::store::{Admission, Commit, Committed, NewRecord, Realm};

/// What a [`Backend`] needs beside for [`JournaledTurns`]: an inbox in the same place, of which it
/// executes steps together with its operations.
#[async_trait]
pub trait JournalBackend: Send + Sync {
    /// The realm of the inbox.
    fn realm(&self) -> &Realm;

    /// Admits a message and, when it is new, executes `reserve` in the same step; where the turn is
    /// not free, perhaps in one behind it. When the turn is granted in the same step and nothing else
    /// of the chat is pending, the record is begun under its fence.
    ///
    /// # Errors
    /// As for [`Backend::send`].
    async fn ingest(
        &self,
        record: NewRecord<'_>,
        reserve: &Operation,
    ) -> Result<Arrival, BackendError>;

    /// Ends a record and, unless that is refused, executes `release` in the same step. Where
    /// somebody waits for the turn, the release may be a step behind it.
    ///
    /// # Errors
    /// As for [`Backend::send`].
    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError>;
}

/// What became of a message and of the reservation that went with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// How the message was admitted.
    pub admission: Admission,
    /// The answer to the reservation; none unless the message is new, or when it is not known what
    /// became of a reservation behind the admission.
    pub reply: Option<Reply>,
    /// Whether the record was begun, under the fence that was granted.
    pub is_begun: bool,
}

/// What became of the end of a record and of the release that went with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// What became of the commit.
    pub committed: Committed,
    /// The answer to the release; none when the commit was refused, or when it is not known what
    /// became of a release behind it, which is repeated then.
    pub reply: Option<Reply>,
}

#[async_trait]
impl<B: Backend> JournaledTurns for CoordinatorClient<B> {
    fn is_in(&self, realm: &Realm) -> bool {
        self.backend.journal().is_some_and(|journal| journal.realm() == realm)
    }

    async fn ingest(&self, record: NewRecord<'_>) -> Result<Ingested, IngestError> {
        let refused = |reason: &str| IngestError::Refused(reason.into());
        let shared = self.shared().map_err(|error| IngestError::Refused(error.into()))?;
        let Some(journal) = shared.backend.journal() else {
            return Err(refused("the backend has no inbox"));
        };
        let Some(live) = shared.live_now() else { return Err(refused("there is no session")) };
        let key = CoordinationKey::from(record.chat);
        let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Arc::clone(&live.lease);
        shared.tickets.open(sequence, key.clone(), Arc::clone(&session), shared.clock.now());
        // From here on a dropped future gives the ticket up.
        let claim = Claim::new(key.clone(), session, sequence, shared.releases.clone());
        let ticket = live.ticket(sequence);
        let reserve = Operation::Reserve { key: key.clone(), ticket, epoch: live.epoch() };
        // As patient as with a message that is admitted alone: it is not repeated so soon.
        let patience = shared.settings.lease();
        let answered = match tokio::time::timeout(patience, journal.ingest(record, &reserve)).await
        {
            Ok(answered) => answered,
            Err(elapsed) => Err(BackendError::Unknown(elapsed.into())),
        };
        let Arrival { admission, reply, is_begun } = match answered {
            Ok(arrival) => arrival,
            Err(BackendError::Unknown(source)) => return Err(IngestError::Unknown(source)),
            Err(BackendError::Refused(source)) => {
                shared.forget(claim);
                return Err(IngestError::Refused(source));
            }
            Err(BackendError::Unfit(reason)) => {
                shared.forget(claim);
                return Err(IngestError::Refused(reason.into()));
            }
        };
        let begins = match &reply {
            Some(Reply::Granted(grant)) if is_begun => Begins::Under(grant.fence),
            _ => Begins::Later,
        };
        let place = match (admission, reply) {
            (Admission::New { .. }, Some(reply)) => Some(
                shared
                    .placed(&live, claim, reply)
                    .map(|claim| Ticket::from_claim(record.chat.clone(), claim)),
            ),
            (Admission::New { .. }, None) => Some(Err(unavailable("ingest", "no answer".into()))),
            _ => {
                shared.forget(claim);
                None
            }
        };
        Ok(Ingested { admission, place, begins })
    }

    async fn commit(
        &self,
        turn: &TurnGuard,
        commit: Commit<'_>,
    ) -> Result<Committed, CoordinationError> {
        let shared = self.shared()?;
        let failed = |source| unavailable("commit", source);
        let Some(journal) = shared.backend.journal() else {
            return Err(failed("the backend has no inbox".into()));
        };
        let Some((session, sequence)) = turn.ticket() else {
            return Err(failed("the turn is local".into()));
        };
        let key = CoordinationKey::from(turn.key());
        let incarnation = session.incarnation().clone();
        let ticket = TicketId { incarnation: incarnation.clone(), sequence };
        let release = Operation::Release { key: key.clone(), ticket };
        // Whoever asks gives up when the turn is lost, and not before: to send it again would load
        // a slow backend twice.
        let Departure { committed, reply } = match journal.commit(commit, &release).await {
            Ok(departure) => departure,
            Err(BackendError::Unfit(reason)) => return Err(CoordinationError::Unfit { reason }),
            Err(BackendError::Refused(source) | BackendError::Unknown(source)) => {
                return Err(failed(source));
            }
        };
        match reply {
            Some(reply) => {
                shared.tickets.close(sequence);
                if let Reply::Released { next: Some((sequence, grant)) } = reply {
                    let ticket = TicketId { incarnation, sequence };
                    shared.sink().wake(Wakeup { ticket, key, grant });
                }
            }
            None if matches!(committed, Committed::Applied(_)) => {
                shared.releases.put(Release { key, session: Arc::clone(session), sequence });
            }
            None => {}
        }
        Ok(committed)
    }
}

impl<B: Backend> Shared<B> {
    /// The session, if one lives now.
    fn live_now(&self) -> Option<Arc<Live>> {
        match self.live.get() {
            Phase::Live(live) if live.lease.loss().is_none() => Some(live),
            _ => None,
        }
    }

    /// Closes a ticket of which the backend knows nothing.
    fn forget(&self, claim: Claim) {
        self.tickets.close(claim.sequence);
        claim.forget();
    }

    /// Notes the answer to the reservation of `claim`, which was executed or not: once.
    fn placed(&self, live: &Live, claim: Claim, reply: Reply) -> Result<Claim, CoordinationError> {
        let key = claim.key.clone();
        match reply {
            Reply::Granted(_) | Reply::Queued { .. } => {
                self.note_reply(live, claim.sequence, &reply);
                Ok(claim)
            }
            Reply::Full { waiting } => {
                self.forget(claim);
                Err(CoordinationError::Full { key, waiting })
            }
            // Of an earlier epoch, or the session is not known there: nothing was reserved.
            _ => {
                if reply == Reply::NoSession {
                    self.doubt.notify_one();
                }
                self.forget(claim);
                Err(CoordinationError::LeaseLost { key, reason: LossReason::Superseded })
            }
        }
    }
}
