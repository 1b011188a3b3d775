use async_trait::async_trait;
use thiserror::Error;

use super::error::CoordinationError;
use super::ticket::Ticket;
use super::turn::TurnGuard;
use crate::error::BoxError;
use crate::id::Fence;
use crate::store::{Admission, Commit, Committed, NewRecord, Realm};

/// Turns and an inbox that are one backend: a durable message costs one request before it is
/// processed and one after it, where nobody else has the chat.
///
/// Both steps are atomic at the backend, and each does what the steps that it is made of would do
/// one after the other.
#[async_trait]
pub trait JournaledTurns: Send + Sync {
    /// Whether the inbox whose steps are taken along is the one of this realm.
    fn is_in(&self, realm: &Realm) -> bool;

    /// Admits a message as [`InboxStore::admit`](crate::store::InboxStore::admit) does. When it is
    /// new, the next place in the queue of its chat is reserved too, and when the turn is granted
    /// at once and nothing else is pending, the record is begun under its fence.
    ///
    /// # Errors
    /// [`IngestError`], after which no place is reserved.
    async fn ingest(&self, record: NewRecord<'_>) -> Result<Ingested, IngestError>;

    /// Ends a record as [`InboxStore::commit`](crate::store::InboxStore::commit) does, and with it
    /// the turn of `turn`, which whoever holds it need not release any more. When it is refused,
    /// the turn goes on.
    ///
    /// # Errors
    /// [`CoordinationError`] when it is not known whether it was executed, or it surely was not. The
    /// turn goes on, as far as anybody knows.
    async fn commit(
        &self,
        turn: &TurnGuard,
        commit: Commit<'_>,
    ) -> Result<Committed, CoordinationError>;
}

/// What became of a message that came in.
#[derive(Debug)]
#[must_use = "a ticket gives up its place when it is dropped"]
pub struct Ingested {
    /// How it was admitted.
    pub admission: Admission,
    /// The place of a new one in the queue of its chat, or why there is none; then another one
    /// has to be reserved. None of a message that is not new.
    pub place: Option<Result<Ticket, CoordinationError>>,
    /// Whether its record was begun.
    pub begins: Begins,
}

/// Whether a record was begun together with its admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// It has to be begun under its turn.
    Later,
    /// It was begun under this fence, for the first time.
    Under(Fence),
}

/// Why a message was not taken in.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Surely nothing was done: take the single steps.
    #[error("not executed")]
    Refused(#[source] BoxError),
    /// The message may have been admitted. Its place was given up.
    #[error("outcome unknown")]
    Unknown(#[source] BoxError),
}
