//! The specification of coordination: one pure function from state, operation and time to the next
//! state, a reply and wake-ups.
//!
//! Every backend is an adapter of [`step`]. The in-memory hub runs it behind a mutex; a script or
//! a stored procedure is a transcription of it, and a differential test compares the two. The model
//! check explores it with crashes, expiry, lost and repeated messages.
//!
//! The state is split as a backend stores it: a [`SessionTable`] that all keys share, and for each
//! key a [`TurnRecord`]. An operation reads and writes the table and one record, never two records,
//! so that a partitioned backend can keep a table for each partition.
//!
//! What holds after every step:
//! - A key has one holder at most. Fences of successive grants increase strictly.
//! - A key that nobody holds has no waiting tickets, except while [grace](SessionTable::grace_left)
//!   lasts and until the first poll after it.
//! - Tickets are granted in the order of their reservation. Skipped are only tickets of sessions
//!   that are gone: expired and buried, or stopped.
//! - A session that was buried never lives again.
//! - Every operation may be repeated: the reply is then the same, or says what has become of the
//!   ticket meanwhile.

mod mutation;
mod operation;
mod record;
mod session;
mod stored;

#[cfg(test)]
mod tests;

pub use mutation::Mutation;
pub use operation::{Operation, Outcome, Reply, TicketId, Wakeup};
pub use record::TurnRecord;
pub use session::{Session, SessionTable};
pub use stored::{StoredSession, StoredSpace, StoredTurn};

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::CoordinationKey;
use super::settings::CoordinatorSettings;
use record::Asking;

/// A moment of the backend's clock in microseconds. Only the backend reads that clock, and moments
/// of it are compared with each other alone.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ServerTime(u64);

impl ServerTime {
    /// Takes microseconds since any fixed moment, in practice since 1970.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since that fixed moment.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment `later` after this one.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_micros()).unwrap_or(u64::MAX)))
    }

    /// The moment `earlier` before this one.
    #[must_use]
    pub fn minus(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(earlier.as_micros()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to this moment; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Bounds that a caller passes along with its operations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// How many tickets may wait for one key.
    pub max_queue: u32,
    /// How long a record that is held or waited for outlives its last touch. It only removes what
    /// crashed replicas left behind, and must exceed any jump of the backend's clock that is to
    /// be survived: a record that is absent looks free.
    pub held: Duration,
    /// How long a record that is free remembers its last holder; longer than every lease.
    pub idle: Duration,
    /// How long nothing is granted at least after the backend was restarted, replaced or wiped: the
    /// longest lease that anybody may still believe in. A longer lease that the backend remembers,
    /// or that somebody registers meanwhile, counts too. Zero switches it off.
    pub grace: Duration,
}

impl From<&CoordinatorSettings> for Limits {
    fn from(settings: &CoordinatorSettings) -> Self {
        Self {
            max_queue: settings.max_queue(),
            held: Duration::from_secs(24 * 3600).max(settings.lease() * 20),
            idle: settings.idle(),
            grace: settings.grace(),
        }
    }
}

/// When and where a step is executed.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The backend's clock, fixed during the step.
    pub now: ServerTime,
    /// Names one run of the backend's server: another name means that it was restarted or replaced
    /// and may have forgotten what it had answered last.
    pub server: &'a str,
    /// The caller's bounds.
    pub limits: &'a Limits,
    mutation: Option<Mutation>,
}

impl<'a> At<'a> {
    /// A step at `now` by the run `server`.
    #[must_use]
    pub const fn new(now: ServerTime, server: &'a str, limits: &'a Limits) -> Self {
        Self { now, server, limits, mutation: None }
    }

    /// Breaks one rule, so that tests can prove that they notice.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub const fn mutated(mut self, mutation: Option<Mutation>) -> Self {
        self.mutation = mutation;
        self
    }

    const fn breaks(&self, rule: Mutation) -> bool {
        if cfg!(any(test, feature = "testing")) {
            matches!(self.mutation, Some(broken) if broken as u8 == rule as u8)
        } else {
            false
        }
    }
}

/// The whole state of one coordination space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    /// The sessions, shared by all keys.
    pub sessions: SessionTable,
    /// The records of the keys that are held, waited for or remembered.
    pub records: BTreeMap<CoordinationKey, TurnRecord>,
}

impl Ledger {
    /// An empty space of the run `server`, which is known to be new: no grace is needed.
    #[must_use]
    pub fn founded(server: &str) -> Self {
        Self { sessions: SessionTable::founded(server), records: BTreeMap::new() }
    }

    /// Forgets the last holder of a key. Fences stay monotonic, for the forgotten one raises the
    /// floor of the table. Does nothing when the key is held or waited for.
    pub fn forget(&mut self, key: &CoordinationKey) -> bool {
        match self.records.get(key) {
            Some(record) if record.is_idle() => {
                self.sessions.raise_floor(record.fence());
                self.records.remove(key);
                true
            }
            _ => false,
        }
    }
}

/// Executes one operation.
pub fn step(ledger: &mut Ledger, operation: &Operation, at: &At<'_>) -> Outcome {
    match operation {
        Operation::Register { .. } | Operation::Heartbeat { .. } | Operation::Stop { .. } => {
            Outcome::from(step_session(&mut ledger.sessions, operation, at))
        }
        Operation::Reserve { key, .. }
        | Operation::Attempt { key, .. }
        | Operation::Poll { key, .. }
        | Operation::Release { key, .. }
        | Operation::Touch { key, .. } => {
            let mut record = ledger.records.remove(key).unwrap_or_default();
            let outcome = step_key(&mut ledger.sessions, &mut record, operation, at);
            if !record.is_absent() {
                ledger.records.insert(key.clone(), record);
            }
            outcome
        }
    }
}

/// Executes an operation on the sessions; other operations answer [`Reply::NoSession`].
pub fn step_session(sessions: &mut SessionTable, operation: &Operation, at: &At<'_>) -> Reply {
    sessions.observe(at);
    match operation {
        Operation::Register { incarnation, lease } => sessions.register(incarnation, *lease, at),
        Operation::Heartbeat { incarnation, epoch, age } => {
            sessions.heartbeat(incarnation, *epoch, *age, at)
        }
        Operation::Stop { incarnation } => sessions.stop(incarnation),
        _ => Reply::NoSession,
    }
}

/// Executes an operation on one key, whose record is absent by default; operations on sessions
/// answer [`Reply::NoSession`].
pub fn step_key(
    sessions: &mut SessionTable,
    record: &mut TurnRecord,
    operation: &Operation,
    at: &At<'_>,
) -> Outcome {
    sessions.observe(at);
    record.expire(at);
    match operation {
        Operation::Reserve { key, ticket, epoch } => {
            record.ask(sessions, key, ticket, Asking::Reserve(*epoch), at)
        }
        Operation::Attempt { key, ticket, epoch } => {
            record.ask(sessions, key, ticket, Asking::Attempt(*epoch), at)
        }
        Operation::Poll { key, ticket } => record.ask(sessions, key, ticket, Asking::Poll, at),
        Operation::Release { key, ticket } => record.release(sessions, key, ticket, at),
        Operation::Touch { ticket, .. } => Outcome::from(record.touch(ticket, at)),
        _ => Outcome::from(Reply::NoSession),
    }
}
