//! Coordination for databases without scripts of their own: the transition function runs here, on
//! what was read, and the result is written by compare-and-set.
//!
//! A backend implements [`LedgerStore`], reading and writing two kinds of rows, and sends its
//! operations through a [`StoredLedger`]. It may [decide](LedgerStore::shortcut) the usual cases by
//! itself in one round trip: a free key is taken, a key for which nobody waits is given back.
//!
//! Why two rows suffice, without a transaction over both: what an operation concludes from the space
//! stays true when the space changes before the turn is written, with one exception. That somebody
//! is dead may be overtaken by a heartbeat; but the dead are buried in the space first, by
//! compare-and-set, and whoever is buried has no way back.
//!
//! A write that got no answer may yet arrive. The client gives its ticket up, and that a ticket has
//! nothing is only told with another revision of the row: what was decided before finds a row that it
//! does not expect, and grants no key to a ticket that nobody has.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::client::BackendError;
use super::key::CoordinationKey;
use super::transition::{
    At, Ledger, Limits, Operation, Outcome, Reply, ServerTime, StoredSpace, StoredTurn, step,
};

/// How often one operation is decided anew because others wrote meanwhile. One of them succeeded
/// each time, so this only ends what can never succeed.
const ATTEMPTS: u32 = 50;
/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(16);

/// A row with its revision, by which it is compared. An absent row has the revision zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revised<T> {
    /// Changes with each write and never comes back, not even when the row was deleted meanwhile.
    pub revision: u64,
    /// What the row holds.
    pub state: T,
}

/// What an operation is decided from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The database's clock when this was read.
    pub now: ServerTime,
    /// Names the run of the server whose memory is read. It must change whenever writes that were
    /// confirmed may have been lost; for a database that keeps them it may be a constant.
    pub server: String,
    /// The sessions and what they share.
    pub space: Revised<StoredSpace>,
    /// The turn of the key that was asked for; absent when no key was.
    pub turn: Revised<StoredTurn>,
}

/// What is to be written. Each row only where its revision is still `expected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'a> {
    /// To be written first, when it is there.
    pub space: Option<Write<'a, StoredSpace>>,
    /// The key and its turn. Written only after the space was.
    pub turn: Option<(&'a CoordinationKey, Write<'a, StoredTurn>)>,
}

/// One row that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write<'a, T> {
    /// The revision that it must have; zero when it must be absent.
    pub expected: u64,
    /// The revision that it gets.
    pub next: u64,
    /// What it holds then.
    pub state: &'a T,
}

/// Rows in a database. Reads see every write that was confirmed before they began.
#[async_trait]
pub trait LedgerStore: Debug + Send + Sync + 'static {
    /// Reads the clock, the space and, if there is a key, its turn.
    ///
    /// # Errors
    /// [`BackendError`]; nothing was changed.
    async fn read(&self, key: Option<&CoordinationKey>) -> Result<Snapshot, BackendError>;

    /// Writes the rows that are there, in one transaction or one after the other. False when one
    /// was not as expected; then no later one was written.
    ///
    /// # Errors
    /// [`BackendError`]; it tells whether something may have been written.
    async fn write(&self, change: Change<'_>) -> Result<bool, BackendError>;

    /// Executes an operation by itself, if its case is one of those that can be decided in one round
    /// trip: it decides like [`step`] and gives the row that it writes another revision, as
    /// [`write`](Self::write) would. None when it has changed nothing; the operation is then
    /// decided on what is read. It must not grant to a ticket that was given up when it arrives late;
    /// a comparison with the session's epoch ensures that.
    ///
    /// # Errors
    /// [`BackendError`]; it tells whether something may have been written.
    async fn shortcut(
        &self,
        _operation: &Operation,
        _limits: &Limits,
    ) -> Result<Option<Outcome>, BackendError> {
        Ok(None)
    }
}

/// Executes operations on rows. Operations of this process on one key, but polls, go one after the
/// other, in the order in which they were begun; those of others are noticed by their writes.
#[derive(Debug)]
pub struct StoredLedger<S> {
    store: S,
    keys: Mutex<HashMap<CoordinationKey, Arc<tokio::sync::Mutex<()>>>>,
}

/// The place of one operation among those on its key. It gives way when it is dropped.
struct Place<'a> {
    keys: &'a Mutex<HashMap<CoordinationKey, Arc<tokio::sync::Mutex<()>>>>,
    key: &'a CoordinationKey,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut keys = self.keys.lock();
        // The map and this one: nobody else waits.
        if Arc::strong_count(&self.lock) == 2 {
            keys.remove(self.key);
        }
    }
}

impl<S: LedgerStore> StoredLedger<S> {
    /// Executes operations on the rows of `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, keys: Mutex::default() }
    }

    /// Where the rows are.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Executes one operation: by the store's shortcut, or usually by one read and one write.
    ///
    /// # Errors
    /// [`BackendError`] of the store, and `Refused` when others write all the time.
    pub async fn execute(
        &self,
        operation: &Operation,
        limits: &Limits,
    ) -> Result<Outcome, BackendError> {
        let key = match operation {
            // Those that wait take no place and give none up: many at once disturb no order, and
            // whoever releases does not wait for them.
            Operation::Poll { .. } => None,
            operation => operation.key(),
        };
        let executing = async {
            match self.store.shortcut(operation, limits).await? {
                Some(outcome) => Ok(outcome),
                None => self.decide(operation, limits).await,
            }
        };
        match key {
            Some(key) => self.in_turn(key, executing).await,
            None => executing.await,
        }
    }

    /// Does `work` as one operation on `key`: behind those of this process that were begun before
    /// it. For backends that execute an operation together with something else: they
    /// [decide](Self::decide) in it what they could not take along.
    pub async fn in_turn<T>(&self, key: &CoordinationKey, work: impl Future<Output = T>) -> T {
        let lock = Arc::clone(self.keys.lock().entry(key.clone()).or_default());
        let place = Place { keys: &self.keys, key, lock };
        let _first = place.lock.lock().await;
        work.await
    }

    /// Executes one operation by reads and writes alone, and waits for no other one of this process.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    pub async fn decide(
        &self,
        operation: &Operation,
        limits: &Limits,
    ) -> Result<Outcome, BackendError> {
        for attempt in 0..ATTEMPTS {
            // Whoever lost twice must not lose for ever against those in step with it.
            if attempt > 1 {
                tokio::time::sleep(pause(operation, attempt)).await;
            }
            let snapshot = self.store.read(operation.key()).await?;
            let decided = Decided::new(snapshot, operation, limits);
            let change = decided.change(operation.key());
            if change.is_empty() || self.store.write(change).await? {
                return Ok(decided.outcome);
            }
        }
        Err(BackendError::Refused(format!("{ATTEMPTS} times others wrote first").into()))
    }
}

impl Change<'_> {
    /// Whether nothing is to be written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.space.is_none() && self.turn.is_none()
    }
}

/// An operation that was decided and not yet written.
struct Decided {
    outcome: Outcome,
    /// How long the record of a key that is held is kept.
    held: Duration,
    /// Whether the ticket is given up and has nothing: a write that would give it something may
    /// yet arrive.
    refuses: bool,
    before: Snapshot,
    space: StoredSpace,
    turn: StoredTurn,
}

impl Decided {
    fn new(before: Snapshot, operation: &Operation, limits: &Limits) -> Self {
        let mut ledger =
            Ledger { sessions: before.space.state.clone().into(), ..Ledger::default() };
        if let (Some(key), 1..) = (operation.key(), before.turn.revision) {
            ledger.records.insert(key.clone(), before.turn.state.clone().into());
        }
        let at = At::new(before.now, &before.server, limits);
        let outcome = step(&mut ledger, operation, &at);
        let space = StoredSpace::from(&ledger.sessions);
        let turn = operation.key().and_then(|key| ledger.records.remove(key));
        let mut turn = StoredTurn::from(turn.unwrap_or_default());
        let refuses =
            outcome.reply == Reply::NotHolder && matches!(operation, Operation::Release { .. });
        if refuses && turn == StoredTurn::default() {
            // There must be a row, to be found by what arrives late.
            turn.expires_at = before.now.plus(limits.idle);
        }
        Self { outcome, held: limits.held, refuses, before, space, turn }
    }

    fn change<'a>(&'a self, key: Option<&'a CoordinationKey>) -> Change<'a> {
        let now = self.before.now.as_micros();
        let space = Write {
            expected: self.before.space.revision,
            next: next(self.before.space.revision, now),
            state: &self.space,
        };
        let turn = Write {
            expected: self.before.turn.revision,
            next: next(self.before.turn.revision, now),
            state: &self.turn,
        };
        Change {
            space: Some(space).filter(|_| self.space != self.before.space.state),
            turn: key.map(|key| (key, turn)).filter(|_| self.has_changed_the_turn()),
        }
    }

    fn has_changed_the_turn(&self) -> bool {
        if self.refuses {
            return true;
        }
        let before = &self.before.turn.state;
        // What has expired is as good as absent, and need not be written as such.
        let has_expired = before.expires_at <= self.before.now;
        if self.turn == *before || (self.turn == StoredTurn::default() && has_expired) {
            return false;
        }
        // That it is to be kept a little longer is no reason to write at each poll.
        let later = self.turn.expires_at.since(before.expires_at);
        let same = StoredTurn { expires_at: before.expires_at, ..self.turn.clone() } == *before;
        !same || later > self.held / 10
    }
}

/// Differs between the waiting ones, and is the same each time that one sequence of events is run.
fn pause(operation: &Operation, attempt: u32) -> Duration {
    let mut hasher = std::hash::DefaultHasher::new();
    (operation, attempt).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1000).unwrap_or_default();
    PAUSE.min(Duration::from_millis(1) * attempt) * share / 1000
}

/// A revision that was never used before, also of a row that was deleted meanwhile: rows are
/// deleted long after their last write.
fn next(revision: u64, now: u64) -> u64 {
    now.max(revision + 1)
}

#[cfg(test)]
mod tests;
