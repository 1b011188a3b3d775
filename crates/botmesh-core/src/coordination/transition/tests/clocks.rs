//! Restarts, wipes and clocks that jump.

use super::*;

/// C3: after a restart nothing is granted until every lease of before has run out; places in the
/// queue that are reserved meanwhile are kept.
#[test]
fn a_wiped_or_restarted_backend_grants_nothing_for_a_lease() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.ledger = Ledger::default();
    assert_eq!(backend.reserve("b", 1).reply, Reply::NoSession);
    backend.register("b2");
    backend.register("c2");
    assert_eq!(queued(&backend.reserve("b2", 1).reply), 0);
    assert_eq!(queued(&backend.reserve("c2", 1).reply), 1);
    assert_eq!(backend.attempt("c2", 2), Reply::Busy { remaining: LEASE });
    backend.pass_renewing(LEASE - SECOND, &["b2", "c2"]);
    assert_eq!(backend.poll("b2", 1).reply, Reply::Queued { ahead: 0, remaining: SECOND });
    backend.pass_renewing(SECOND, &["b2", "c2"]);
    let outcome = backend.poll("c2", 1);
    assert_eq!(outcome.wakeup.unwrap().ticket, ticket("b2", 1), "the queue is kept in order");

    backend.server = "another run";
    let outcome = backend.release("b2", 1);
    assert_eq!((outcome.reply, outcome.wakeup), (Reply::Released { next: None }, None));
    backend.pass_renewing(LEASE, &["b2", "c2"]);
    granted(backend.poll("c2", 1).reply);
}

/// C6: a jump of the backend's clock kills no replica that lives.
#[test]
fn a_clock_that_jumps_forward_buries_nobody_alive() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    backend.pass(Duration::from_secs(3600));
    backend.register("new");
    assert_eq!(queued(&backend.reserve("new", 1).reply), 2, "a newcomer buries nobody");
    assert_eq!(backend.poll("b", 1).reply, Reply::NoSession);
    assert_eq!(backend.heartbeat_aged("b", 0, SECOND), Reply::Jumped);
    assert!(matches!(backend.poll("b", 1).reply, Reply::Queued { remaining: LEASE, .. }));
    assert_eq!(backend.heartbeat_aged("a", 0, SECOND), Reply::Jumped);
    backend.pass_renewing(LEASE, &["a", "b"]);
    assert_eq!(queued(&backend.poll("b", 1).reply), 1, "the holder has renewed");
    granted(backend.poll("a", 1).reply);
}

#[test]
fn a_clock_that_is_set_back_delays_the_dead_by_a_lease_at_most() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    backend.now = ServerTime::from_micros(1_000);
    assert_eq!(backend.heartbeat("b"), Reply::Renewed);
    assert_eq!(backend.poll("b", 1).reply, Reply::Queued { ahead: 1, remaining: LEASE });
    backend.pass_renewing(LEASE, &["b"]);
    granted(backend.poll("b", 1).reply);
}

#[test]
fn a_replica_that_is_late_itself_buries_nobody() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.pass_renewing(SECOND * 5, &["b"]);
    backend.reserve("b", 1);
    backend.pass(SECOND * 11);
    assert_eq!(queued(&backend.poll("b", 1).reply), 1, "not renewed for most of its lease");
    assert_eq!(backend.heartbeat("b"), Reply::Renewed);
    granted(backend.poll("b", 1).reply);
}

/// C6: nor does a jump after which only those look expired that were renewed a while ago.
#[test]
fn a_jump_of_less_than_a_lease_buries_nobody_alive() {
    for (jump, reply) in
        [(SECOND * 12, Reply::Jumped), (SECOND * 2, Reply::Jumped), (SECOND, Reply::Renewed)]
    {
        let mut backend = Backend::with(&["a", "b"]);
        granted(backend.reserve("a", 1).reply);
        backend.reserve("b", 1);
        backend.pass(SECOND * 4);
        assert_eq!(backend.heartbeat_aged("b", 0, SECOND * 4), Reply::Renewed);
        backend.now = backend.now.plus(jump);
        assert_eq!(queued(&backend.poll("b", 1).reply), 1);
        backend.pass(SECOND / 2);
        assert_eq!(backend.heartbeat_aged("b", 0, SECOND / 2), reply, "{jump:?}");
        assert_eq!(queued(&backend.poll("b", 1).reply), 1, "{jump:?}");
        backend.pass(SECOND / 2);
        assert_ne!(backend.heartbeat_aged("a", 0, SECOND * 5), Reply::Expired, "{jump:?}");
        granted(backend.poll("a", 1).reply);
    }
}

/// C6: whoever looks expired is taken for dead only by the caller's heartbeat after that.
#[test]
fn a_caller_renews_its_own_session_before_it_buries_another() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    backend.pass_renewing(SECOND * 13, &["b"]);
    backend.pass(SECOND * 3);
    let renew_first = Reply::Queued { ahead: 1, remaining: Duration::ZERO };
    assert_eq!(backend.poll("b", 1).reply, renew_first);
    assert_eq!(backend.attempt("b", 2), Reply::Busy { remaining: Duration::ZERO });
    assert_eq!(backend.heartbeat("b"), Reply::Renewed);
    granted(backend.poll("b", 1).reply);
}

/// C4: after a jump the dead are replaced once a lease has passed, also when the clock was set
/// back meanwhile.
#[test]
fn a_jump_that_is_set_right_again_delays_the_dead_by_a_lease_at_most() {
    let mut backend = Backend::with(&["a", "b"]);
    granted(backend.reserve("a", 1).reply);
    backend.reserve("b", 1);
    let right = backend.now;
    backend.pass(DAY / 24);
    assert_eq!(backend.heartbeat_aged("b", 0, SECOND), Reply::Jumped);
    backend.now = right.plus(SECOND * 2);
    // Counted from the first heartbeat after that.
    backend.pass_renewing(LEASE + SECOND, &["b"]);
    granted(backend.poll("b", 1).reply);
}

/// C3: a clock that is set back makes the grace after a restart no longer than a lease.
#[test]
fn grace_ends_after_a_lease_though_the_clock_was_set_back() {
    let mut backend = Backend::with(&["a"]);
    backend.server = "another run";
    assert_eq!(backend.attempt("a", 1), Reply::Busy { remaining: LEASE });
    backend.now = ServerTime::from_micros(1_000);
    assert_eq!(backend.heartbeat("a"), Reply::Renewed);
    assert_eq!(backend.attempt("a", 2), Reply::Busy { remaining: LEASE });
    backend.pass_renewing(LEASE, &["a"]);
    granted(backend.attempt("a", 3));
}

/// C3: after a restart nothing is granted for the longest lease that anybody had, whoever notices
/// the restart.
#[test]
fn grace_lasts_for_the_longest_lease() {
    let long = LEASE * 4;
    let register = |name: &str| Operation::Register { incarnation: id(name), lease: long };
    let mut backend = Backend::with(&["a"]);
    assert_eq!(backend.run(&register("long")).reply, registered(LEASE, long));
    backend.server = "another run";
    assert_eq!(backend.attempt("a", 1), Reply::Busy { remaining: long }, "it is still known");

    // Everything is forgotten: others with that lease may be cut off when one comes back.
    backend.ledger = Ledger::default();
    assert_eq!(backend.register("a2"), registered(LEASE, LEASE));
    assert_eq!(backend.attempt("a2", 1), Reply::Busy { remaining: LEASE });
    backend.pass_renewing(SECOND, &["a2"]);
    assert_eq!(backend.run(&register("long2")).reply, registered(LEASE, long));
    assert_eq!(backend.attempt("a2", 2), Reply::Busy { remaining: long - SECOND });

    // Without a restart a longer lease changes nothing.
    backend.pass_renewing(long, &["a2"]);
    assert_eq!(backend.run(&register("long3")).reply, registered(LEASE, long));
    granted(backend.attempt("a2", 3));
}
