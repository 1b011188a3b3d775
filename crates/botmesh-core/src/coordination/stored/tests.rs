//! The whole contract over rows, with other replicas writing between each read and write.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::conformance::coordinator::{CoordinatorFixture, Replica};
use crate::conformance::differential;
use crate::coordination::client::{Backend, CoordinatorClient, PushSink};
use crate::coordination::transition::TicketId;
use crate::coordination::{Coordinator, CoordinatorSettings, LeaseClock};
use crate::id::{IncarnationId, ReplicaId};

/// Rows in memory, with tokio's time. Each call gives way to other tasks.
#[derive(Debug, Clone)]
struct Rows(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Instant,
    space: Mutex<Revised<StoredSpace>>,
    turns: Mutex<HashMap<CoordinationKey, Revised<StoredTurn>>>,
    lost: AtomicU64,
}

impl Rows {
    fn new() -> Self {
        let space = Mutex::new(Revised {
            revision: 1,
            state: StoredSpace { server: Some("one".to_owned()), ..StoredSpace::default() },
        });
        let (turns, lost) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Shared { started: Instant::now(), space, turns, lost }))
    }

    /// How many writes came too late.
    fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::SeqCst)
    }
}

fn swap<T: Clone + Default>(row: &mut Revised<T>, write: Write<'_, T>) -> bool {
    let expected = row.revision == write.expected;
    if expected {
        assert!(write.next > row.revision, "a revision comes back");
        *row = Revised { revision: write.next, state: write.state.clone() };
    }
    expected
}

#[async_trait]
impl LedgerStore for Rows {
    async fn read(&self, key: Option<&CoordinationKey>) -> Result<Snapshot, BackendError> {
        tokio::task::yield_now().await;
        let since = u64::try_from(self.0.started.elapsed().as_micros()).unwrap();
        let now = ServerTime::from_micros(1_700_000_000_000_000 + since);
        let space = self.0.space.lock().clone();
        let turn = key.and_then(|key| self.0.turns.lock().get(key).cloned()).unwrap_or_default();
        Ok(Snapshot { now, server: "one".to_owned(), space, turn })
    }

    async fn write(&self, change: Change<'_>) -> Result<bool, BackendError> {
        tokio::task::yield_now().await;
        let space = change.space.is_none_or(|write| swap(&mut self.0.space.lock(), write));
        tokio::task::yield_now().await;
        let written = space
            && change.turn.is_none_or(|(key, write)| {
                swap(self.0.turns.lock().entry(key.clone()).or_default(), write)
            });
        self.0.lost.fetch_add(u64::from(!written), Ordering::SeqCst);
        Ok(written)
    }
}

/// Carries operations to the rows; it polls.
#[derive(Debug)]
struct RowsBackend {
    ledger: StoredLedger<Rows>,
    limits: Limits,
    frozen: AtomicBool,
}

impl RowsBackend {
    fn new(rows: &Rows, limits: Limits) -> Self {
        let ledger = StoredLedger::new(rows.clone());
        Self { ledger, limits, frozen: AtomicBool::new(false) }
    }

    async fn pass(&self) {
        while self.frozen.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[async_trait]
impl Backend for RowsBackend {
    fn name(&self) -> &'static str {
        "rows"
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.pass().await;
        let outcome = self.ledger.execute(operation, &self.limits).await?;
        self.pass().await;
        Ok(outcome.reply)
    }

    async fn listen(&self, _: &IncarnationId, _: PushSink) -> Result<(), BackendError> {
        Ok(())
    }
}

#[derive(Debug)]
struct Fixture(Rows);

impl Fixture {
    fn new() -> Self {
        tokio::time::pause();
        Self(Rows::new())
    }
}

#[derive(Debug)]
struct RowsReplica(CoordinatorClient<RowsBackend>);

#[async_trait]
impl CoordinatorFixture for Fixture {
    async fn open(
        &self,
        _prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let backend = RowsBackend::new(&self.0, Limits::from(&settings));
        let client = CoordinatorClient::builder(backend).replica_id(replica);
        let client = client.settings(settings).clock(LeaseClock::tokio()).build();
        Some(Arc::new(RowsReplica(client)))
    }
}

#[async_trait]
impl Replica for RowsReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.0
    }

    async fn crash(&self) {
        self.0.backend().frozen.store(true, Ordering::SeqCst);
        self.0.abandon();
    }

    async fn freeze(&self) -> bool {
        self.0.backend().frozen.store(true, Ordering::SeqCst);
        true
    }

    async fn thaw(&self) {
        self.0.backend().frozen.store(false, Ordering::SeqCst);
    }
}

/// C13, C16: the whole contract holds over rows that are compared and set.
mod on_rows {
    crate::coordinator_conformance!(super::Fixture::new());
}

/// C3, C16: alone, what is decided on rows is what the function decides.
#[tokio::test]
async fn rows_agree_with_the_transition_function() {
    for seed in 0..200 {
        let backend = RowsBackend::new(&Rows::new(), differential::limits());
        differential::agrees(&backend, &differential::choices(seed, 300)).await.unwrap();
    }
}

/// C3: replicas that write between the read and the write of one another grant nothing twice, and
/// no place in the queue is lost.
#[tokio::test(start_paused = true)]
async fn writes_of_others_between_read_and_write_are_noticed() {
    const REPLICAS: u64 = 4;
    const TICKETS: u64 = 25;
    let rows = Rows::new();
    let key = CoordinationKey::decode("chat:suite:one").unwrap();
    let lease = Duration::from_secs(600);
    let mut replicas = Vec::new();
    for replica in 0..REPLICAS {
        let backend = Arc::new(RowsBackend::new(&rows, differential::limits()));
        let incarnation = IncarnationId::new(format!("{replica}#1")).unwrap();
        let register = Operation::Register { incarnation: incarnation.clone(), lease };
        backend.send(&register).await.unwrap();
        replicas.push((backend, incarnation));
    }
    let held = Arc::new(AtomicU64::new(0));
    let tasks = replicas.into_iter().flat_map(|(backend, incarnation)| {
        let (key, held) = (key.clone(), Arc::clone(&held));
        (1..=TICKETS).map(move |sequence| {
            let ticket = TicketId { incarnation: incarnation.clone(), sequence };
            let (backend, key, held) = (Arc::clone(&backend), key.clone(), Arc::clone(&held));
            tokio::spawn(async move {
                let limits = Limits { max_queue: 1000, ..differential::limits() };
                let reserve =
                    Operation::Reserve { key: key.clone(), ticket: ticket.clone(), epoch: 0 };
                let mut reply = backend.ledger.execute(&reserve, &limits).await.unwrap().reply;
                while !matches!(reply, Reply::Granted(_)) {
                    assert!(matches!(reply, Reply::Queued { .. }), "{reply:?}");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let poll = Operation::Poll { key: key.clone(), ticket: ticket.clone() };
                    reply = backend.ledger.execute(&poll, &limits).await.unwrap().reply;
                }
                assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                tokio::task::yield_now().await;
                held.fetch_sub(1, Ordering::SeqCst);
                let release = Operation::Release { key, ticket };
                let reply = backend.ledger.execute(&release, &limits).await.unwrap().reply;
                assert!(matches!(reply, Reply::Released { .. }), "{reply:?}");
            })
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(rows.lost() > 0, "nobody ever wrote between a read and a write");
}

/// C4: a ticket that was given up while grace lasts leaves its row, of a key that was never held.
#[tokio::test]
async fn a_ticket_that_is_given_up_during_grace_leaves_its_row() {
    let rows = Rows::new();
    *rows.0.space.lock() = Revised::default();
    let limits = Limits { grace: Duration::from_secs(60), ..differential::limits() };
    let backend = RowsBackend::new(&rows, limits);
    let key = CoordinationKey::decode("chat:suite:one").unwrap();
    let incarnation = IncarnationId::new("a#1").unwrap();
    let ticket = TicketId { incarnation: incarnation.clone(), sequence: 1 };
    let register = Operation::Register { incarnation, lease: Duration::from_secs(60) };
    backend.send(&register).await.unwrap();
    let reserve = Operation::Reserve { key: key.clone(), ticket: ticket.clone(), epoch: 0 };
    assert!(matches!(backend.send(&reserve).await.unwrap(), Reply::Queued { .. }));
    let release = Operation::Release { key: key.clone(), ticket };
    assert_eq!(backend.send(&release).await.unwrap(), Reply::Cancelled);
    assert_eq!(backend.send(&release).await.unwrap(), Reply::NotHolder);
    assert!(rows.0.turns.lock()[&key].state.queue.is_empty(), "it waits for ever");
}

/// A write that got stuck on its way.
#[derive(Debug)]
struct StuckWrite {
    expected: u64,
    next: u64,
    state: StoredTurn,
}

/// Rows whose first write of a turn gets no answer, and arrives when the test says so.
#[derive(Debug)]
struct SlowRows {
    rows: Rows,
    stuck: Mutex<Option<StuckWrite>>,
}

#[async_trait]
impl LedgerStore for SlowRows {
    async fn read(&self, key: Option<&CoordinationKey>) -> Result<Snapshot, BackendError> {
        self.rows.read(key).await
    }

    async fn write(&self, change: Change<'_>) -> Result<bool, BackendError> {
        if let Some((_, write)) = &change.turn
            && self.stuck.lock().is_none()
        {
            let Write { expected, next, state } = write.clone();
            *self.stuck.lock() = Some(StuckWrite { expected, next, state: state.clone() });
            return Err(BackendError::Unknown("no answer".into()));
        }
        self.rows.write(change).await
    }
}

/// C4, C7: a reservation that arrives after its ticket was given up takes nothing, whatever the row
/// was when it was decided. The key would be held, or waited for, by nobody.
#[tokio::test]
async fn a_write_that_arrives_after_its_release_takes_nothing() {
    let limits = differential::limits();
    let key = CoordinationKey::decode("chat:suite:one").unwrap();
    let [own, other] = ["a#1", "b#1"].map(|name| IncarnationId::new(name).unwrap());
    let ticket = TicketId { incarnation: own.clone(), sequence: 1 };
    let before = TicketId { incarnation: other.clone(), sequence: 1 };
    let until = ServerTime::from_micros(u64::MAX);
    let free = StoredTurn { fence: 7, expires_at: until, ..StoredTurn::default() };
    let rows_before = [
        ("absent", None),
        ("free", Some(free.clone())),
        ("expired", Some(StoredTurn { expires_at: ServerTime::from_micros(1), ..free.clone() })),
        ("busy", Some(StoredTurn { holder: Some(before), ..free })),
    ];
    for (name, state) in rows_before {
        let rows = Rows::new();
        let turns = state.map(|state| (key.clone(), Revised { revision: 1, state }));
        rows.0.turns.lock().extend(turns);
        let slow = SlowRows { rows: rows.clone(), stuck: Mutex::default() };
        let ledger = StoredLedger::new(slow);
        let lease = Duration::from_secs(60);
        for incarnation in [own.clone(), other.clone()] {
            let register = Operation::Register { incarnation, lease };
            ledger.execute(&register, &limits).await.unwrap();
        }
        let reserve = Operation::Reserve { key: key.clone(), ticket: ticket.clone(), epoch: 0 };
        let lost = ledger.execute(&reserve, &limits).await;
        assert!(matches!(lost, Err(BackendError::Unknown(_))), "{name}: {lost:?}");
        let release = Operation::Release { key: key.clone(), ticket: ticket.clone() };
        let released = ledger.execute(&release, &limits).await.unwrap();
        assert_eq!(released.reply, Reply::NotHolder, "{name}");

        let late = ledger.store().stuck.lock().take().expect("it was written at once");
        let write = Write { expected: late.expected, next: late.next, state: &late.state };
        let change = Change { space: None, turn: Some((&key, write)) };
        assert!(!rows.write(change).await.unwrap(), "{name}: it was written late");
        let left = rows.0.turns.lock()[&key].state.clone();
        let is_there = left.holder.as_ref() == Some(&ticket) || left.queue.contains(&ticket);
        assert!(!is_there, "{name}: {left:?}");
    }
}

/// A key that nobody works on leaves nothing in memory.
#[tokio::test]
async fn places_are_forgotten() {
    let backend = RowsBackend::new(&Rows::new(), differential::limits());
    differential::agrees(&backend, &differential::choices(7, 300)).await.unwrap();
    assert!(backend.ledger.keys.lock().is_empty());
}
