use std::time::Duration;

use super::*;
use crate::coordination::{
    CoordinationKey, Leadership, LeaseClock, Release, ReleaseQueue, SessionLease,
};
use crate::id::{LeaderName, ProviderId, ReplicaId};

fn chat() -> ChatKey {
    ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap()
}

fn session() -> Arc<SessionLease> {
    let incarnation = IncarnationId::fresh(&ReplicaId::new("a").unwrap());
    let clock = LeaseClock::tokio();
    SessionLease::new(incarnation, clock, Duration::from_secs(15), clock.now())
}

fn grant(previous: Option<(&IncarnationId, u64)>) -> Grant {
    let previous = previous.map(|(incarnation, fence)| PreviousHolder {
        incarnation: incarnation.clone(),
        fence: Fence::new(fence),
    });
    Grant { fence: Fence::new(7), previous }
}

fn given_up(release: &Release) -> (&str, u64) {
    (release.key.as_str(), release.sequence)
}

#[tokio::test]
async fn a_guard_refuses_once_its_turn_was_dropped() {
    let turn = ChatTurn::local(chat(), Fence::new(7));
    let guard = turn.guard();
    assert_eq!(guard.check(), Ok(()));
    drop(turn);
    assert_eq!(guard.check().unwrap_err().reason, LossReason::Ended);
    assert_eq!(guard.lost().await.reason, LossReason::Ended);
}

#[tokio::test]
async fn the_first_reason_for_a_loss_stays() {
    let turn = ChatTurn::local(chat(), Fence::new(7));
    let guard = turn.guard();
    let waiting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.lost().await }
    });
    tokio::task::yield_now().await;
    guard.end(LossReason::Superseded);
    turn.end(LossReason::Stopped);
    assert_eq!(waiting.await.unwrap().reason, LossReason::Superseded);
}

/// C6: work under a turn is refused as soon as the session's own deadline has passed.
#[tokio::test(start_paused = true)]
async fn a_granted_turn_ends_with_its_session() {
    let (queue, mut releases) = ReleaseQueue::new();
    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 3, queue), grant(None));
    assert_eq!(turn.check(), Ok(()));
    assert_eq!(turn.lost().await.reason, LossReason::Expired);
    assert_eq!(turn.guard().check().unwrap_err().reason, LossReason::Expired);
    drop(turn);
    assert_eq!(given_up(&releases.recv().await.unwrap()), ("chat:test:ana", 3));
}

/// C4: a ticket that is dropped gives up its place, once.
#[tokio::test]
async fn a_dropped_ticket_or_turn_is_given_up_exactly_once() {
    let (queue, mut releases) = ReleaseQueue::new();
    drop(Ticket::new(chat(), session(), 1, queue.clone()));
    assert_eq!(given_up(&releases.recv().await.unwrap()), ("chat:test:ana", 1));

    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 2, queue.clone()), grant(None));
    assert!(releases.try_recv().is_err(), "a ticket that became a turn is not given up");
    turn.end(LossReason::Settled);
    assert_eq!(given_up(&releases.recv().await.unwrap()), ("chat:test:ana", 2));

    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 3, queue.clone()), grant(None));
    let released = tokio::spawn(turn.release());
    let release = releases.recv().await.unwrap();
    assert_eq!(given_up(&release), ("chat:test:ana", 3));
    assert!(!released.is_finished(), "a release waits for the backend");
    release.done.unwrap().send(()).unwrap();
    released.await.unwrap().unwrap();
    drop(queue);
    assert!(releases.recv().await.is_none(), "nothing is given up twice");
}

/// C10: a leadership that is dropped is released.
#[tokio::test]
async fn a_dropped_leadership_is_given_up() {
    let (queue, mut releases) = ReleaseQueue::new();
    let name = LeaderName::new("job").unwrap();
    let leadership = Leadership::granted(name.clone(), session(), 4, &grant(None), queue);
    assert_eq!(leadership.check(), Ok(()));
    drop(leadership);
    let release = releases.recv().await.unwrap();
    assert_eq!((release.key, release.sequence), (CoordinationKey::from(name), 4));
}

#[tokio::test]
async fn a_release_after_the_coordinator_stopped_is_an_error_and_ends_the_turn() {
    let (queue, releases) = ReleaseQueue::new();
    drop(releases);
    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 1, queue), grant(None));
    let guard = turn.guard();
    assert!(matches!(turn.release().await, Err(CoordinationError::Stopped)));
    assert_eq!(guard.check().unwrap_err().reason, LossReason::Ended);
}

/// C8: memory of a chat is current only if this incarnation held it last, with the fence that it
/// remembers.
#[tokio::test]
async fn only_the_same_incarnation_with_the_same_fence_continues() {
    let (queue, _releases) = ReleaseQueue::new();
    let session = session();
    let own = session.incarnation().clone();
    let other = IncarnationId::fresh(&ReplicaId::new("a").unwrap());
    let turn = |previous| {
        let ticket = Ticket::new(chat(), Arc::clone(&session), 1, queue.clone());
        ChatTurn::granted(ticket, grant(previous))
    };
    assert!(turn(Some((&own, 6))).continues(Fence::new(6)));
    assert!(!turn(Some((&own, 6))).continues(Fence::new(5)), "an abandoned turn came between");
    assert!(!turn(Some((&other, 6))).continues(Fence::new(6)));
    assert!(!turn(None).continues(Fence::new(6)));
    assert_eq!(turn(Some((&other, 6))).previous_holder(), Some(&other));
    assert_eq!(turn(Some((&other, 6))).previous_fence(), Some(Fence::new(6)));
    assert!(ChatTurn::local(chat(), Fence::new(9)).continues(Fence::new(6)));
}
