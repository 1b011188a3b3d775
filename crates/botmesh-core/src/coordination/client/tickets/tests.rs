//! Interleavings of those who meet at a ticket: answer, wake-up, waiter, guard, keeper. Each
//! method is one critical section, so shuttle interleaves the calls.

use std::future::poll_fn;
use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::thread;

use super::*;
use crate::coordination::LeaseClock;
use crate::id::{Fence, LeaderName, ReplicaId};

const ROUNDS: usize = 2_000;

fn key() -> CoordinationKey {
    LeaderName::new("k").unwrap().into()
}

fn grant(fence: u64) -> Grant {
    Grant { fence: Fence::new(fence), previous: None }
}

/// A map with one ticket whose reservation is under way.
fn asked() -> (Arc<TicketMap>, TicketId) {
    let clock = LeaseClock::machine();
    let incarnation = IncarnationId::fresh(&ReplicaId::new("a").unwrap());
    let lease = Duration::from_secs(3600);
    let session = SessionLease::new(incarnation.clone(), clock, lease, clock.now());
    let map = Arc::new(TicketMap::default());
    map.expect(Arc::clone(&session));
    map.open(1, key(), session, clock.now());
    (map, TicketId { incarnation, sequence: 1 })
}

fn wait(map: &TicketMap) -> Settled {
    shuttle::future::block_on(poll_fn(|context| map.poll_settled(1, context)))
}

/// C14: a wake-up that overtakes the answer to its reservation is not lost.
#[test]
fn an_early_push_meets_its_ticket() {
    let round = || {
        let (map, ticket) = asked();
        let push = thread::spawn({
            let map = Arc::clone(&map);
            move || matches!(map.grant(&ticket, grant(7)), Delivery::Delivered)
        });
        let answer = thread::spawn({
            let map = Arc::clone(&map);
            move || map.queued(1, Duration::from_secs(1))
        });
        assert_eq!(wait(&map), Settled::Granted(grant(7)));
        assert!(push.join().unwrap());
        answer.join().unwrap();
        assert!(map.is_held(1));
    };
    shuttle::check_random(round, ROUNDS);
    shuttle::check_pct(round, ROUNDS, 3);
}

/// C4: a grant by poll and by push is taken once.
#[test]
fn a_grant_that_comes_twice_is_taken_once() {
    let round = || {
        let (map, ticket) = asked();
        let grants: Vec<_> = (0..2)
            .map(|_| {
                let (map, ticket) = (Arc::clone(&map), ticket.clone());
                thread::spawn(move || matches!(map.grant(&ticket, grant(7)), Delivery::Delivered))
            })
            .collect();
        assert_eq!(wait(&map), Settled::Granted(grant(7)));
        let taken = grants.into_iter().map(|grant| grant.join().unwrap());
        assert_eq!(taken.filter(|delivered| *delivered).count(), 1);
        assert_eq!(wait(&map), Settled::Lost(LossReason::Ended), "a second waiter gets nothing");
    };
    shuttle::check_random(round, ROUNDS);
}

/// C7: a ticket that is dropped while its grant arrives is released after the grant, by whoever
/// comes second.
#[test]
fn a_ticket_dropped_during_its_grant_is_released() {
    let round = || {
        let (map, ticket) = asked();
        let log = Arc::new(Mutex::new(Vec::new()));
        let push = thread::spawn({
            let (map, log) = (Arc::clone(&map), Arc::clone(&log));
            move || {
                // The backend has granted before it pushes.
                log.lock().unwrap().push("granted");
                if let Delivery::Unclaimed(_) = map.grant(&ticket, grant(7)) {
                    log.lock().unwrap().push("released");
                }
            }
        });
        let drop_ticket = thread::spawn({
            let (map, log) = (Arc::clone(&map), Arc::clone(&log));
            move || {
                assert!(map.close(1).is_some());
                log.lock().unwrap().push("released");
            }
        });
        push.join().unwrap();
        drop_ticket.join().unwrap();
        let log = log.lock().unwrap();
        let granted = log.iter().position(|event| *event == "granted").unwrap();
        assert!(log[granted..].contains(&"released"), "held by nobody: {log:?}");
        assert_eq!(map.len(), 0);
    };
    shuttle::check_random(round, ROUNDS);
    shuttle::check_pct(round, ROUNDS, 3);
}

/// C4: a ticket that is lost twice, by its poll and with its session, is told once and wakes its
/// waiter.
#[test]
fn a_double_loss_is_one_loss() {
    let round = || {
        let (map, ticket) = asked();
        let skipped = thread::spawn({
            let map = Arc::clone(&map);
            move || map.lose(1, LossReason::Superseded)
        });
        let session = thread::spawn({
            let (map, incarnation) = (Arc::clone(&map), ticket.incarnation.clone());
            move || map.lose_all(&incarnation, LossReason::Stopped)
        });
        let late = thread::spawn({
            let map = Arc::clone(&map);
            move || matches!(map.grant(&ticket, grant(7)), Delivery::Delivered)
        });
        let settled = wait(&map);
        skipped.join().unwrap();
        let reported = session.join().unwrap();
        let delivered = late.join().unwrap();
        match settled {
            Settled::Granted(_) => assert!(delivered),
            Settled::Lost(LossReason::Superseded | LossReason::Stopped) => {
                assert!(reported.is_empty(), "a ticket that was not held is reported as held");
            }
            Settled::Lost(other) => panic!("{other:?}"),
        }
        assert!(!map.is_first(1), "it stands in the way of those behind");
    };
    shuttle::check_random(round, ROUNDS);
    shuttle::check_pct(round, ROUNDS, 3);
}

#[test]
fn only_the_oldest_ticket_of_a_key_is_first() {
    let (map, ticket) = asked();
    let open = map.open_of(&ticket.incarnation);
    assert_eq!(
        open.iter().map(|open| (open.sequence, open.held)).collect::<Vec<_>>(),
        [(1, false)]
    );
    let clock = LeaseClock::machine();
    let session =
        SessionLease::new(ticket.incarnation, clock, Duration::from_secs(60), clock.now());
    map.open(2, key(), Arc::clone(&session), clock.now());
    assert!(map.is_first(1) && !map.is_first(2));
    let closed = map.close(1).unwrap();
    assert_eq!(closed, Closed { key: key(), unanswered: true, held: false });
    assert!(map.is_first(2));
    let stranger = TicketId { incarnation: session.incarnation().clone(), sequence: 9 };
    assert!(matches!(map.grant(&stranger, grant(1)), Delivery::Unclaimed(_)));
    let foreign = IncarnationId::fresh(&ReplicaId::new("b").unwrap());
    let foreign = TicketId { incarnation: foreign, sequence: 2 };
    assert!(matches!(map.grant(&foreign, grant(1)), Delivery::Foreign));
}
