//! The client over a hub that fails in ways which the suite cannot ask for.

mod journal;
mod leases;
mod polls;

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::coordination::transition::{Limits, Operation, TicketId};
use crate::coordination::{LossReason, TurnGuard};
use crate::id::ProviderId;
use crate::testing::{MemoryBackend, MemoryCoordinationHub, MemoryCoordinator};

const LEASE: Duration = Duration::from_secs(15);

fn chat() -> ChatKey {
    ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap()
}

async fn started(hub: &MemoryCoordinationHub, name: &str) -> MemoryCoordinator {
    let id = ReplicaId::new(name).unwrap();
    let coordinator = MemoryCoordinator::builder(hub).replica_id(id).build();
    coordinator.start().await.unwrap();
    coordinator
}

async fn take(coordinator: &MemoryCoordinator) -> ChatTurn {
    let ticket = coordinator.reserve(&chat()).await.unwrap();
    coordinator.acquire_turn(ticket, AcquireTurn::new()).await.unwrap()
}

/// C4: a reservation whose answer was lost is repeated as the same ticket, and leaves one.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_ticket() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = started(&hub, "b").await;
    for lost in 1..4 {
        a.faults().lose_replies(lost);
        let turn = take(&a).await;
        a.faults().lose_replies(lost);
        let waiting = b.reserve(&chat()).await.unwrap();
        let behind = a.reserve(&chat()).await.unwrap();
        assert_eq!(hub.record(chat()).unwrap().queue().len(), 2);
        a.faults().lose_replies(lost);
        turn.release().await.unwrap();
        let turn = b.acquire_turn(waiting, AcquireTurn::new()).await.unwrap();
        turn.release().await.unwrap();
        let turn = a.acquire_turn(behind, AcquireTurn::new()).await.unwrap();
        turn.release().await.unwrap();
        assert!(hub.record(chat()).unwrap().is_idle());
        assert_eq!((a.open_tickets(), b.open_tickets()), (0, 0));
    }
}

/// C7: refused and lost requests are repeated, a release too.
#[tokio::test(start_paused = true)]
async fn refused_and_lost_requests_are_repeated() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    a.faults().refuse(3);
    let turn = take(&a).await;
    a.faults().lose_requests(3);
    turn.release().await.unwrap();
    assert!(hub.record(chat()).unwrap().is_idle());
}

/// C4: a backend that stays away gives an error in a bounded time.
#[tokio::test(start_paused = true)]
async fn a_backend_that_stays_away_is_unavailable() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    a.faults().freeze();
    let before = Instant::now();
    let error = a.reserve(&chat()).await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(before.elapsed() <= LEASE * 2, "{:?}", before.elapsed());
    a.faults().thaw();
    take(&a).await.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_backend_fails_and_can_be_repeated() {
    let hub = MemoryCoordinationHub::new();
    let a = MemoryCoordinator::builder(&hub).build();
    assert!(matches!(a.reserve(&chat()).await, Err(CoordinationError::Stopped)));
    a.faults().refuse(1);
    assert!(a.start().await.unwrap_err().is_unavailable());
    a.start().await.unwrap();
    a.start().await.unwrap();
    take(&a).await.release().await.unwrap();
}

/// C3: a hub that was wiped grants nothing while an old holder may act, and then goes on.
#[tokio::test(start_paused = true)]
async fn a_wiped_backend_pauses_and_recovers_by_itself() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = started(&hub, "b").await;
    let turn = take(&a).await;
    let old: TurnGuard = turn.guard();
    hub.restart(true);
    let wiped = Instant::now();
    let next = loop {
        // The session that it was reserved under is lost too, at first.
        let Ok(ticket) = b.reserve(&chat()).await else { continue };
        match b.acquire_turn(ticket, AcquireTurn::new()).await {
            Ok(turn) => break turn,
            Err(CoordinationError::LeaseLost { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(old.check().is_err(), "two act on one chat");
    assert!(wiped.elapsed() >= LEASE - LEASE / 3);
    assert!(wiped.elapsed() <= LEASE * 2 + Duration::from_secs(1), "{:?}", wiped.elapsed());
    assert!(next.check().is_ok());
    drop(turn);
}

/// C6: a jump of the backend's clock is reported and costs no turn.
#[tokio::test(start_paused = true)]
async fn a_jump_of_the_backends_clock_costs_no_turn() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = started(&hub, "b").await;
    tokio::time::sleep(LEASE * 2).await;
    let mut events = a.subscribe();
    let turn = take(&a).await;
    let waiting = b.reserve(&chat()).await.unwrap();
    hub.jump_clock(Duration::from_secs(3600));
    assert_eq!(events.recv().await.unwrap(), CoordinatorEvent::ClockJump);
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(turn.check(), Ok(()));
    turn.release().await.unwrap();
    let next = b.acquire_turn(waiting, AcquireTurn::new()).await.unwrap();
    assert!(next.check().is_ok());
}

/// C6: whoever finds that the backend has lost its record lets go of everything.
#[tokio::test(start_paused = true)]
async fn a_holder_that_the_backend_has_forgotten_lets_go() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let turn = take(&a).await;
    let meddler = MemoryBackend::new(&hub, Limits::from(&CoordinatorSettings::default()));
    let holder: TicketId = hub.record(chat()).unwrap().holder().unwrap().clone();
    let release = Operation::Release { key: (&chat()).into(), ticket: holder };
    meddler.send(&release).await.unwrap();
    let lost = tokio::time::timeout(LEASE * 6, turn.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::Superseded);
}

/// A backend whose path for wake-ups breaks when it is told to.
#[derive(Debug)]
struct Breaking(MemoryBackend, Mutex<Option<PushSink>>);

#[async_trait]
impl Backend for Breaking {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.0.send(operation).await
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        sink: PushSink,
    ) -> Result<(), BackendError> {
        *self.1.lock() = Some(sink.clone());
        self.0.listen(incarnation, sink).await
    }
}

/// C3: a server that takes over may know a session and not its last grants. Whoever holds one
/// finds out when it is connected again, and lets go long before somebody else gets it.
#[tokio::test(start_paused = true)]
async fn a_holder_that_was_forgotten_lets_go_when_it_is_connected_again() {
    let hub = MemoryCoordinationHub::new();
    let limits = Limits::from(&CoordinatorSettings::default());
    let backend = Breaking(MemoryBackend::new(&hub, limits.clone()), Mutex::new(None));
    let client = CoordinatorClient::builder(backend).clock(LeaseClock::tokio()).build();
    client.start().await.unwrap();
    let ticket = client.reserve(&chat()).await.unwrap();
    let turn = client.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
    let sink = client.backend().1.lock().clone().unwrap();
    let reconnect = || {
        sink.disconnected();
        sink.connected();
    };
    reconnect();
    tokio::time::sleep(LEASE).await;
    assert_eq!(turn.check(), Ok(()));
    let holder: TicketId = hub.record(chat()).unwrap().holder().unwrap().clone();
    let release = Operation::Release { key: (&chat()).into(), ticket: holder };
    MemoryBackend::new(&hub, limits).send(&release).await.unwrap();
    reconnect();
    let lost = tokio::time::timeout(LEASE / 20, turn.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::Superseded);
}

/// C7: a server that takes over may have forgotten a release and know the session that released.
/// Who waits for the key gets it all the same.
#[tokio::test(start_paused = true)]
async fn a_release_that_was_forgotten_is_repeated_for_whoever_waits() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = started(&hub, "b").await;
    // A grant that a knows nothing of, as after its release was forgotten.
    let forgotten = TicketId { incarnation: a.incarnation().unwrap(), sequence: 1_000 };
    let reserve = Operation::Reserve { key: (&chat()).into(), ticket: forgotten, epoch: 0 };
    let limits = Limits::from(&CoordinatorSettings::default());
    MemoryBackend::new(&hub, limits).send(&reserve).await.unwrap();
    let ticket = b.reserve(&chat()).await.unwrap();
    let before = Instant::now();
    b.acquire_turn(ticket, AcquireTurn::new()).await.unwrap().release().await.unwrap();
    assert!(before.elapsed() < LEASE / 3, "{:?}", before.elapsed());
    assert!(a.incarnation().is_some());
}

/// A backend that takes long to answer some operations.
#[derive(Debug)]
struct Slow(MemoryBackend, fn(&Operation) -> Option<Duration>);

#[async_trait]
impl Backend for Slow {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        if let Some(time) = self.1(operation) {
            tokio::time::sleep(time).await;
        }
        self.0.send(operation).await
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        sink: PushSink,
    ) -> Result<(), BackendError> {
        self.0.listen(incarnation, sink).await
    }
}

/// C5: the renewal of the lease does not wait until many held chats have been touched.
#[tokio::test(start_paused = true)]
async fn many_slow_touches_delay_no_heartbeat() {
    let hub = MemoryCoordinationHub::new();
    let backend = MemoryBackend::new(&hub, Limits::from(&CoordinatorSettings::default()));
    let touches =
        |operation: &Operation| matches!(operation, Operation::Touch { .. }).then_some(LEASE / 5);
    let client = CoordinatorClient::builder(Slow(backend, touches)).build();
    client.start().await.unwrap();
    let mut turns = Vec::new();
    for number in 0..500 {
        let chat = ChatKey::decode(&format!("test:{number}")).unwrap();
        let ticket = client.reserve(&chat).await.unwrap();
        turns.push(client.acquire_turn(ticket, AcquireTurn::new()).await.unwrap());
    }
    tokio::time::sleep(LEASE * 20).await;
    assert!(turns.iter().all(|turn| turn.check().is_ok()));
}

/// C4: a reservation that is never answered gives an error in a bounded time, also where renewals
/// are answered all the time.
#[tokio::test(start_paused = true)]
async fn a_reservation_that_is_never_answered_is_unavailable() {
    let hub = MemoryCoordinationHub::new();
    let backend = MemoryBackend::new(&hub, Limits::from(&CoordinatorSettings::default()));
    let reservations = |operation: &Operation| {
        matches!(operation, Operation::Reserve { .. }).then_some(LEASE * 100)
    };
    let client = CoordinatorClient::builder(Slow(backend, reservations)).build();
    client.start().await.unwrap();
    let before = Instant::now();
    let error = client.reserve(&chat()).await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(before.elapsed() <= LEASE * 2, "{:?}", before.elapsed());
}

/// C2: after a lost lease the coordinator comes back as another incarnation.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_followed_by_another_incarnation() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let first = a.incarnation().unwrap();
    a.faults().freeze();
    tokio::time::sleep(LEASE).await;
    assert_eq!(a.incarnation(), None);
    a.faults().thaw();
    take(&a).await.release().await.unwrap();
    assert_ne!(a.incarnation().unwrap(), first);
}

/// C15: the next ticket of the same replica is granted by the answer to the release.
#[tokio::test(start_paused = true)]
async fn a_hand_over_within_a_replica_needs_no_push_and_no_poll() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    a.faults().drop_pushes(true);
    let turn = take(&a).await;
    let next = a.reserve(&chat()).await.unwrap();
    let before = hub.operations();
    turn.release().await.unwrap();
    let next = a.acquire_turn(next, AcquireTurn::new()).await.unwrap();
    assert_eq!(hub.operations() - before, 1);
    drop(next);
}

/// C6: with heartbeats on a thread of their own, a replica whose runtime stands still loses its
/// turns, and one whose tasks are merely waiting does not.
#[test]
fn an_isolated_heartbeat_stops_when_the_runtime_stands_still() {
    let lease = Duration::from_millis(1500);
    let settings = CoordinatorSettings::builder().lease(lease).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let hub = MemoryCoordinationHub::new();
        let backend = MemoryBackend::new(&hub, Limits::from(&settings));
        let client = CoordinatorClient::builder(backend).settings(settings);
        let client = client.isolated_heartbeat(true).build();
        client.start().await.unwrap();
        let ticket = client.reserve(&chat()).await.unwrap();
        let turn = client.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
        tokio::time::sleep(lease + lease / 2).await;
        assert_eq!(turn.check(), Ok(()), "renewed while the runtime makes progress");
        // The fault itself: nothing else runs on this runtime meanwhile.
        std::thread::sleep(lease * 2);
        assert_eq!(turn.check().unwrap_err().reason, LossReason::Expired);
        client.stop().await.unwrap();
    });
}
