use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::faults::CoordinationFaults;
use crate::coordination::CoordinationKey;
use crate::coordination::client::PushSink;
use crate::coordination::transition::{
    At, Ledger, Limits, Mutation, Operation, Outcome, ServerTime, TurnRecord, step,
};
use crate::id::IncarnationId;

/// The shared backend of [`MemoryCoordinator`](super::MemoryCoordinator)s: the reference
/// implementation, which runs the transition function behind a mutex. Its time is tokio's, so a
/// test that pauses it has virtual leases.
///
/// Clones are the same hub.
#[derive(Clone)]
pub struct MemoryCoordinationHub(Arc<Mutex<Hub>>);

struct Hub {
    ledger: Ledger,
    max_idle_keys: usize,
    /// The keys that nobody holds or waits for, by when they became so.
    idle: BTreeMap<u64, CoordinationKey>,
    idle_since: HashMap<CoordinationKey, u64>,
    uses: u64,
    listeners: HashMap<IncarnationId, (PushSink, CoordinationFaults)>,
    started: Instant,
    offset: Duration,
    runs: u32,
    mutation: Option<Mutation>,
    operations: u64,
}

/// When hubs begin: a moment like any other.
const ORIGIN: ServerTime = ServerTime::from_micros(1_700_000_000_000_000);

impl MemoryCoordinationHub {
    /// A hub that remembers the last holders of 10,000 idle keys.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_idle_keys(10_000)
    }

    /// A hub that remembers the last holders of `keys` idle keys. The least recently used are
    /// forgotten first.
    #[must_use]
    pub fn with_max_idle_keys(keys: usize) -> Self {
        let hub = Hub {
            ledger: Ledger::founded("run 0"),
            max_idle_keys: keys,
            idle: BTreeMap::new(),
            idle_since: HashMap::new(),
            uses: 0,
            listeners: HashMap::new(),
            started: Instant::now(),
            offset: Duration::ZERO,
            runs: 0,
            mutation: None,
            operations: 0,
        };
        Self(Arc::new(Mutex::new(hub)))
    }

    /// Executes one operation and delivers its wake-up.
    pub(super) fn execute(&self, operation: &Operation, limits: &Limits) -> Outcome {
        let (outcome, listener) = {
            let mut hub = self.0.lock();
            let outcome = hub.execute(operation, limits);
            let wakeup = outcome.wakeup.as_ref();
            let listener =
                wakeup.and_then(|wakeup| hub.listeners.get(&wakeup.ticket.incarnation).cloned());
            (outcome, listener)
        };
        // Outside of the lock: whoever is woken may come back at once.
        if let (Some((pushes, faults)), Some(wakeup)) = (listener, &outcome.wakeup)
            && !faults.drops_pushes()
        {
            pushes.wake(wakeup.clone());
        }
        outcome
    }

    pub(super) fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
        faults: CoordinationFaults,
    ) {
        self.0.lock().listeners.insert(incarnation.clone(), (pushes, faults));
    }

    pub(super) fn forget_listener(&self, incarnation: &IncarnationId) {
        self.0.lock().listeners.remove(incarnation);
    }

    /// Sets the hub's clock forward by `jump` at once, as a server's clock may be.
    pub fn jump_clock(&self, jump: Duration) {
        self.0.lock().offset += jump;
    }

    /// Restarts the hub, which forgets everything if `wiped`. Either way nothing is granted for a
    /// lease.
    pub fn restart(&self, wiped: bool) {
        let mut hub = self.0.lock();
        hub.runs += 1;
        if wiped {
            hub.ledger = Ledger::default();
            hub.idle.clear();
            hub.idle_since.clear();
        }
    }

    /// Breaks a rule, so that a suite can prove that it notices.
    pub fn break_rule(&self, mutation: Mutation) {
        self.0.lock().mutation = Some(mutation);
    }

    /// How many operations were executed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// How many keys are remembered, the held ones included.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.0.lock().ledger.records.len()
    }

    /// The record of one key.
    #[must_use]
    pub fn record(&self, key: impl Into<CoordinationKey>) -> Option<TurnRecord> {
        self.0.lock().ledger.records.get(&key.into()).cloned()
    }
}

impl Hub {
    fn execute(&mut self, operation: &Operation, limits: &Limits) -> Outcome {
        self.operations += 1;
        let now = ORIGIN.plus(self.started.elapsed() + self.offset);
        let run = format!("run {}", self.runs);
        let at = At::new(now, &run, limits).mutated(self.mutation);
        let outcome = step(&mut self.ledger, operation, &at);
        if let Some(key) = operation.key() {
            self.note_use(key);
        }
        outcome
    }

    fn note_use(&mut self, key: &CoordinationKey) {
        if let Some(since) = self.idle_since.remove(key) {
            self.idle.remove(&since);
        }
        if !self.ledger.records.get(key).is_some_and(TurnRecord::is_idle) {
            return;
        }
        self.uses += 1;
        self.idle.insert(self.uses, key.clone());
        self.idle_since.insert(key.clone(), self.uses);
        while self.idle.len() > self.max_idle_keys {
            let Some((_, oldest)) = self.idle.pop_first() else { return };
            self.idle_since.remove(&oldest);
            self.ledger.forget(&oldest);
        }
    }
}

impl Default for MemoryCoordinationHub {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryCoordinationHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hub = self.0.lock();
        f.debug_struct("MemoryCoordinationHub")
            .field("keys", &hub.ledger.records.len())
            .field("idle", &hub.idle.len())
            .field("sessions", &hub.ledger.sessions.iter().count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
