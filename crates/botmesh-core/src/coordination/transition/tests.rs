//! The rules of the function one by one; the model check explores how they act together.

mod clocks;

use std::time::Duration;

use super::*;
use crate::coordination::hold::{Grant, PreviousHolder};
use crate::id::{Fence, IncarnationId, LeaderName};

const LEASE: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

struct Backend {
    ledger: Ledger,
    limits: Limits,
    now: ServerTime,
    server: &'static str,
}

fn id(name: &str) -> IncarnationId {
    IncarnationId::new(name).unwrap()
}

fn ticket(name: &str, sequence: u64) -> TicketId {
    TicketId { incarnation: id(name), sequence }
}

fn key() -> CoordinationKey {
    LeaderName::new("k").unwrap().into()
}

fn registered(shortest: Duration, longest: Duration) -> Reply {
    Reply::Registered { shortest, longest }
}

impl Backend {
    fn new() -> Self {
        let limits = Limits { max_queue: 3, held: DAY, idle: LEASE * 40, grace: LEASE };
        let now = ServerTime::from_micros(1_000_000_000);
        Self { ledger: Ledger::founded("run"), limits, now, server: "run" }
    }

    /// Sessions that are old enough to bury each other, and were renewed just now.
    fn with(names: &[&str]) -> Self {
        let mut backend = Self::new();
        for name in names {
            assert_eq!(backend.register(name), registered(LEASE, LEASE));
        }
        for _ in 0..3 {
            backend.now = backend.now.plus(LEASE / 3);
            names.iter().for_each(|name| assert_eq!(backend.heartbeat(name), Reply::Renewed));
        }
        backend
    }

    fn run(&mut self, operation: &Operation) -> Outcome {
        step(&mut self.ledger, operation, &At::new(self.now, self.server, &self.limits))
    }

    fn register(&mut self, name: &str) -> Reply {
        self.run(&Operation::Register { incarnation: id(name), lease: LEASE }).reply
    }

    fn heartbeat_aged(&mut self, name: &str, epoch: u32, age: Duration) -> Reply {
        self.run(&Operation::Heartbeat { incarnation: id(name), epoch, age }).reply
    }

    fn heartbeat(&mut self, name: &str) -> Reply {
        self.heartbeat_aged(name, 0, LEASE)
    }

    fn stop(&mut self, name: &str) -> Reply {
        self.run(&Operation::Stop { incarnation: id(name) }).reply
    }

    fn reserve(&mut self, name: &str, sequence: u64) -> Outcome {
        let ticket = ticket(name, sequence);
        self.run(&Operation::Reserve { key: key(), ticket, epoch: 0 })
    }

    fn attempt(&mut self, name: &str, sequence: u64) -> Reply {
        let ticket = ticket(name, sequence);
        self.run(&Operation::Attempt { key: key(), ticket, epoch: 0 }).reply
    }

    fn poll(&mut self, name: &str, sequence: u64) -> Outcome {
        self.run(&Operation::Poll { key: key(), ticket: ticket(name, sequence) })
    }

    fn release(&mut self, name: &str, sequence: u64) -> Outcome {
        self.run(&Operation::Release { key: key(), ticket: ticket(name, sequence) })
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
    }

    /// Lets `time` pass while only `names` are renewed.
    fn pass_renewing(&mut self, time: Duration, names: &[&str]) {
        let end = self.now.plus(time);
        while self.now < end {
            self.pass(SECOND.min(end.since(self.now)));
            names.iter().for_each(|name| assert_eq!(self.heartbeat(name), Reply::Renewed));
        }
    }
}

fn granted(reply: Reply) -> Grant {
    match reply {
        Reply::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

fn queued(reply: &Reply) -> u32 {
    match reply {
        Reply::Queued { ahead, .. } => *ahead,
        other => panic!("not queued: {other:?}"),
    }
}

/// C3: tickets are granted in the order of their reservation, whoever reserved.
#[test]
fn a_release_grants_to_the_ticket_that_was_reserved_first() {
    let mut backend = Backend::with(&["a", "b", "c"]);
    let first = granted(backend.reserve("a", 1).reply);
    assert_eq!(first.previous, None);
    assert_eq!(queued(&backend.reserve("b", 1).reply), 1);
    assert_eq!(queued(&backend.reserve("c", 1).reply), 2);
    let outcome = backend.release("a", 1);
    assert_eq!(outcome.reply, Reply::Released { next: None });
    let wakeup = outcome.wakeup.unwrap();
    assert_eq!((&wakeup.ticket, &wakeup.key), (&ticket("b", 1), &key()));
    assert!(wakeup.grant.fence > first.fence);
    let previous = PreviousHolder { incarnation: id("a"), fence: first.fence };
    assert_eq!(wakeup.grant.previous, Some(previous));
    assert_eq!(backend.poll("b", 1).reply, Reply::Granted(wakeup.grant));
    assert_eq!(queued(&backend.poll("c", 1).reply), 1);
}

/// C15: the grant to a ticket of the same replica comes with the answer to the release.
#[test]
fn the_next_ticket_of_the_same_incarnation_is_granted_by_the_reply() {
    let mut backend = Backend::with(&["a"]);
    backend.reserve("a", 1);
    backend.reserve("a", 2);
    let outcome = backend.release("a", 1);
    assert_eq!(outcome.wakeup, None);
    let Reply::Released { next: Some((2, grant)) } = outcome.reply else {
        panic!("{outcome:?}");
    };
    assert_eq!(backend.poll("a", 2).reply, Reply::Granted(grant));
}

#[test]
fn every_operation_may_be_repeated() {
    let mut backend = Backend::with(&["a", "b"]);
    let first = backend.reserve("a", 1);
    assert_eq!(backend.reserve("a", 1), first);
    let second = backend.reserve("b", 1);
    assert_eq!(backend.reserve("b", 1), second, "queued once");
    backend.release("a", 1);
    assert_eq!(backend.release("a", 1).reply, Reply::NotHolder);
    assert_eq!(backend.reserve("b", 1).reply, backend.poll("b", 1).reply);
    backend.release("b", 1);
    assert_eq!(backend.poll("b", 1).reply, Reply::Superseded);
    assert_eq!(backend.stop("a"), Reply::Stopped);
    assert_eq!(backend.stop("a"), Reply::Stopped);
}

/// C4: a request that its sender has given up is not executed when it arrives late.
#[test]
fn a_reservation_of_an_earlier_epoch_is_refused() {
    let mut backend = Backend::with(&["a"]);
    backend.heartbeat_aged("a", 1, SECOND);
    assert_eq!(backend.reserve("a", 1).reply, Reply::Stale);
    assert_eq!(backend.attempt("a", 1), Reply::Stale);
    let reserve = Operation::Reserve { key: key(), ticket: ticket("a", 1), epoch: 1 };
    granted(backend.run(&reserve).reply);
}

/// C4: tickets of dead replicas are skipped, and their place is gone for good.
#[test]
fn tickets_of_the_dead_are_skipped() {
    let mut backend = Backend::with(&["a", "b", "c"]);
    backend.reserve("a", 1);
    backend.reserve("b", 1);
    backend.reserve("c", 1);
    backend.pass_renewing(LEASE, &["a", "c"]);
    let wakeup = backend.release("a", 1).wakeup.unwrap();
    assert_eq!(wakeup.ticket, ticket("c", 1));
    assert_eq!(backend.heartbeat("b"), Reply::Expired);
    assert_eq!(backend.poll("b", 1).reply, Reply::NoSession);
    backend.register("b2");
    assert_eq!(backend.poll("b2", 1).reply, Reply::Superseded, "nothing is inherited");
}

/// C3: the waiting take over from a dead holder, in their order, when its lease has run out.
#[test]
fn a_poll_takes_the_key_from_a_dead_holder_for_the_next_in_line() {
    let mut backend = Backend::with(&["a", "b", "c"]);
    let dead = granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    backend.reserve("c", 1);
    backend.pass_renewing(LEASE - SECOND, &["b", "c"]);
    assert_eq!(backend.poll("c", 1).reply, Reply::Queued { ahead: 2, remaining: SECOND });
    backend.pass_renewing(SECOND, &["b", "c"]);
    let outcome = backend.poll("c", 1);
    assert_eq!(queued(&outcome.reply), 1);
    let wakeup = outcome.wakeup.unwrap();
    assert_eq!(wakeup.ticket, ticket("b", 1));
    assert_eq!(wakeup.grant.previous.unwrap().fence, dead.fence);
    assert_eq!(backend.heartbeat("a"), Reply::Expired, "once buried it stays dead");
    assert_eq!(backend.release("a", 1).reply, Reply::NotHolder);
}

/// C2: each lease is its owner's: a short one expires early, whatever the others use.
#[test]
fn leases_may_differ() {
    let mut backend = Backend::with(&["a"]);
    let lease = LEASE * 4;
    backend.run(&Operation::Register { incarnation: id("long"), lease });
    granted(backend.reserve("long", 1).reply);
    backend.reserve("a", 1);
    backend.pass_renewing(LEASE * 3, &["a"]);
    assert_eq!(queued(&backend.poll("a", 1).reply), 1);
    backend.pass_renewing(LEASE, &["a"]);
    granted(backend.poll("a", 1).reply);
}

/// C4: a cancelled wait leaves no ticket behind.
#[test]
fn a_waiting_ticket_can_be_given_up() {
    let mut backend = Backend::with(&["a", "b"]);
    backend.reserve("a", 1);
    backend.reserve("b", 1);
    assert_eq!(backend.release("b", 1).reply, Reply::Cancelled);
    assert_eq!(backend.release("b", 1).reply, Reply::NotHolder);
    assert_eq!(backend.release("a", 1).wakeup, None);
}

#[test]
fn a_full_queue_refuses_new_tickets_and_keeps_the_old() {
    let mut backend = Backend::with(&["a", "b"]);
    for sequence in 1..=4 {
        backend.reserve("a", sequence);
    }
    assert_eq!(backend.reserve("b", 1).reply, Reply::Full { waiting: 3 });
    assert_eq!(queued(&backend.reserve("a", 4).reply), 3, "a repeated one is in already");
    backend.release("a", 1);
    assert_eq!(queued(&backend.reserve("b", 1).reply), 3);
}

/// C10: an attempt takes what is free and joins no queue.
#[test]
fn an_attempt_is_granted_or_leaves_nothing() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.attempt("a", 1));
    assert!(matches!(backend.attempt("b", 1), Reply::Busy { .. }));
    assert_eq!(backend.release("a", 1).wakeup, None);
    granted(backend.attempt("b", 2));
    backend.pass_renewing(LEASE, &["a"]);
    granted(backend.attempt("a", 2));
}

/// C9: fences of a key increase strictly, also when the backend forgot it and its clock went back.
#[test]
fn fences_increase_over_eviction_expiry_and_clocks() {
    let mut backend = Backend::with(&["a"]);
    let mut last = Fence::new(0);
    let mut take = |backend: &mut Backend, sequence| {
        let grant = granted(backend.reserve("a", sequence).reply);
        assert!(grant.fence > last, "{:?} after {last:?}", grant.fence);
        last = grant.fence;
        backend.release("a", sequence);
        grant
    };
    for sequence in 1..50 {
        take(&mut backend, sequence);
    }
    assert!(backend.ledger.forget(&key()));
    assert_eq!(take(&mut backend, 50).previous, None, "the recreated key knows no holder");
    backend.pass_renewing(backend.limits.idle, &["a"]);
    assert_eq!(take(&mut backend, 51).previous, None);
    backend.now = ServerTime::from_micros(1);
    assert_eq!(backend.heartbeat("a"), Reply::Renewed);
    take(&mut backend, 52);
}

#[test]
fn only_idle_records_are_forgotten() {
    let mut backend = Backend::with(&["a"]);
    backend.reserve("a", 1);
    assert!(!backend.ledger.forget(&key()));
    backend.pass_renewing(LEASE, &["a"]);
    assert_eq!(backend.poll("a", 1).reply, backend.reserve("a", 1).reply);
}

#[test]
fn a_touch_keeps_the_record_of_a_long_turn() {
    let mut backend = Backend::with(&["a"]);
    backend.limits.held = LEASE * 20;
    let grant = granted(backend.reserve("a", 1).reply);
    let touch = Operation::Touch { key: key(), ticket: ticket("a", 1) };
    backend.pass_renewing(LEASE * 15, &["a"]);
    assert_eq!(backend.run(&touch).reply, Reply::Touched);
    backend.pass_renewing(LEASE * 15, &["a"]);
    assert_eq!(granted(backend.poll("a", 1).reply), grant);
    let foreign = Operation::Touch { key: key(), ticket: ticket("a", 2) };
    assert_eq!(backend.run(&foreign).reply, Reply::NotHolder);
}

#[test]
fn a_stopped_session_is_dead_at_once() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    backend.stop("a");
    granted(backend.poll("b", 1).reply);
}

#[test]
fn the_table_forgets_the_long_dead() {
    let mut backend = Backend::with(&["a", "b"]);
    backend.pass_renewing(LEASE * 2, &["a"]);
    assert!(backend.ledger.sessions.get(&id("b")).is_none());
    assert_eq!(backend.ledger.sessions.iter().count(), 1);
}
