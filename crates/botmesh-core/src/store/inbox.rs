use std::time::Duration;

use async_trait::async_trait;

use super::{CheckpointWrite, Realm, StoreError};
use crate::id::{ChatKey, Fence, MessageId, Position, ProviderId, Revision};

/// A message to be admitted.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// The chat in whose order it is processed.
    pub chat: &'a ChatKey,
    /// The platform's id, by which it is told from others of the chat. Without one each is new.
    pub message: Option<&'a MessageId>,
    /// All that is needed to process it elsewhere: any UTF-8 text without NUL, a mebibyte and
    /// more. Without it the record is a mere claim, that only keeps others from the message.
    pub body: Option<&'a str>,
    /// How long it is the caller's to see that it is processed.
    pub lease: Duration,
    /// How many pending records the chat may have, this one included.
    pub most: usize,
}

/// How a message was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is new, or a claim on it had ended, and is pending at this position.
    New {
        /// Its place in the chat's order.
        position: Position,
        /// Whether the chat had earlier pending records.
        is_behind: bool,
    },
    /// It was admitted before: it is pending, done or dead. Nothing was changed.
    Known,
    /// The chat has as many pending records as it may have. Nothing was changed.
    Full {
        /// How many it has.
        waiting: usize,
    },
}

/// What [`begin`](InboxStore::begin) found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The chat has nothing to be processed.
    Nothing,
    /// The first pending record was postponed, and is due in this time. Nothing was changed.
    NotYet(Duration),
    /// This one is to be processed.
    Record(InboxRecord),
    /// This higher fence has begun it: the caller's turn is over. Nothing was changed.
    Refused(Fence),
}

/// A record that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRecord {
    /// Its place in the chat's order.
    pub position: Position,
    /// What it was admitted with.
    pub body: String,
    /// How often it was begun, this time included.
    pub attempts: u32,
    /// What was last noted of its sends.
    pub sends: Option<String>,
    /// What the last attempt failed with, if it could say so.
    pub error: Option<String>,
    /// Whether the chat has further pending records.
    pub has_more: bool,
}

/// The end of a record's processing.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The chat.
    pub chat: &'a ChatKey,
    /// The record.
    pub position: Position,
    /// The fence of the turn under which it was processed.
    pub fence: Fence,
    /// What it did to the chat's checkpoint.
    pub checkpoint: CheckpointChange<'a>,
}

/// A change of a checkpoint that is made together with the end of a record.
#[derive(Debug, Clone, Copy)]
pub enum CheckpointChange<'a> {
    /// Nothing.
    Nothing,
    /// As [`set_checkpoint_if`](super::ConditionalCheckpointStore::set_checkpoint_if).
    Set {
        /// The checkpoint.
        write: CheckpointWrite<'a>,
        /// The revision that the row must have; none if there must be no row.
        expected: Option<Revision>,
    },
    /// As [`clear_checkpoint_if`](super::ConditionalCheckpointStore::clear_checkpoint_if).
    Clear {
        /// The revision that the row must have.
        expected: Revision,
    },
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a refused commit has changed nothing"]
pub enum Committed {
    /// The record is done and the checkpoint changed; the revision is that of a checkpoint that
    /// was set.
    Applied(Option<Revision>),
    /// The record is not pending any more, a higher fence was here, or the condition of the
    /// checkpoint did not hold. Nothing was changed.
    Refused,
}

/// A failed attempt, after which there will be another.
#[derive(Debug, Clone, Copy)]
pub struct Postponement<'a> {
    /// How often the record counts as begun from now on.
    pub attempts: u32,
    /// What the attempt failed with.
    pub error: &'a str,
    /// What is noted of its sends.
    pub sends: Option<&'a str>,
    /// How long the chat waits before the next attempt.
    pub retry_in: Duration,
}

/// A record that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The chat.
    pub chat: ChatKey,
    /// Its place in the chat's order.
    pub position: Position,
    /// What it was admitted with.
    pub body: String,
    /// How often it was begun.
    pub attempts: u32,
    /// What the last attempt failed with.
    pub error: String,
    /// How long ago it was given up.
    pub age: Duration,
}

/// Which records may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long the id of a message that is done is known after its end.
    pub done: Duration,
    /// How long a dead letter is kept.
    pub dead: Duration,
}

/// The journal of what came in: each record is pending until its effect is stored, then done or
/// dead. Each call is one atomic step at the backend, and the backend's clock tells all times.
///
/// # What an implementation keeps
/// - The positions of a chat grow in the order in which records become visible, and never repeat.
/// - Only the first pending record of a chat can be begun, whoever admitted it. Who may call
///   `begin` is settled outside, by the turn of the chat; the fence refuses a caller whose turn is
///   over. A record's fence is that of the last `begin`, and none before.
/// - A lease gives no right: it says how long others need not look after the record.
/// - Of a record that is done the ids stay and the body goes. A claim can only be ended or
///   released: it never waits, and is never a dead letter.
#[async_trait]
pub trait InboxStore: Send + Sync {
    /// Takes a message in, unless it is known. Cancelling leaves open whether it was taken.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError>;

    /// Begins the first pending record of the chat: counts the attempt, notes the fence and lets
    /// its lease begin anew.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError>;

    /// Ends a pending record together with its change of the checkpoint: both or nothing. Works on
    /// records that were begun under no higher fence, on those that never were, and on claims.
    ///
    /// # Errors
    /// [`StoreError`]. A condition that does not hold is no error but [`Committed::Refused`].
    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError>;

    /// Notes what became of the sends of a pending record; false when it is not pending any more
    /// or a higher fence has begun it. `sends` is any UTF-8 text without NUL.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError>;

    /// Leaves a record pending for another attempt; false as for [`note_sends`](Self::note_sends).
    /// Its lease ends when it is due.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError>;

    /// Gives a record up: it becomes a dead letter and the chat goes on with the next one; false
    /// as for [`note_sends`](Self::note_sends).
    ///
    /// # Errors
    /// [`StoreError`].
    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError>;

    /// Ends the lease of a pending record now, so that others look after it. A claim is removed:
    /// the message is new when it comes again.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError>;

    /// The chats of a provider that have a pending record whose lease has ended, at most `limit`
    /// of them, the longest ended first; those leases begin anew. Two callers may be told the same
    /// chat: that costs a turn in which nothing is found.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError>;

    /// Dead letters in the order of chat and position, at most `limit` of them, from the one
    /// behind `after` on.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError>;

    /// Makes a dead letter pending again at its position, with no attempt counted and no lease,
    /// due at once; what was noted of its sends stays. False when there is no such dead letter.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError>;

    /// Removes at most `limit` records that need not be kept any longer, and claims whose lease
    /// has ended; returns how many. Pending records stay.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError>;

    /// What about this backend endangers what it was given, in sentences for the operator, as when
    /// it keeps nothing on disk. Asked once at the start.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    /// The realm that it shares with the coordinators which make its steps together with theirs
    /// ([`JournaledTurns`](crate::coordination::JournaledTurns)); none when there are no such.
    fn realm(&self) -> Option<&Realm> {
        None
    }
}
