use std::time::Duration;

use super::*;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::coordination::{
    CoordinationKey, Leadership, LeaseClock, Release, Releaser, Releases, SessionLease,
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

/// Notes what is given up, which ends when the test says so.
#[derive(Debug)]
struct Noting(mpsc::UnboundedSender<(Release, oneshot::Sender<()>)>);

impl Releaser for Noting {
    fn give_up(self: Arc<Self>, release: Release) -> BoxFuture<'static, ()> {
        async move {
            let (confirm, confirmed) = oneshot::channel();
            let _ = self.0.send((release, confirm));
            let _ = confirmed.await;
        }
        .boxed()
    }
}

struct Noted {
    _noting: Arc<Noting>,
    given_up: mpsc::UnboundedReceiver<(Release, oneshot::Sender<()>)>,
}

fn noting() -> (Releases, Noted) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let noting = Arc::new(Noting(sender));
    let weak = Arc::downgrade(&noting);
    let noted = Noted { _noting: noting, given_up: receiver };
    (Releases::new(weak, Handle::current()), noted)
}

impl Noted {
    async fn next(&mut self) -> (Release, oneshot::Sender<()>) {
        self.given_up.recv().await.unwrap()
    }

    /// The key and the number of what is given up next, which is confirmed.
    async fn confirm(&mut self) -> (String, u64) {
        let (release, confirm) = self.next().await;
        let _ = confirm.send(());
        (release.key.as_str().to_owned(), release.sequence)
    }

    fn is_empty(&mut self) -> bool {
        self.given_up.try_recv().is_err()
    }
}

fn ana(sequence: u64) -> (String, u64) {
    ("chat:test:ana".to_owned(), sequence)
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
    let (releases, mut noted) = noting();
    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 3, releases), grant(None));
    assert_eq!(turn.check(), Ok(()));
    assert_eq!(turn.lost().await.reason, LossReason::Expired);
    assert_eq!(turn.guard().check().unwrap_err().reason, LossReason::Expired);
    drop(turn);
    assert_eq!(noted.confirm().await, ana(3));
}

/// C4: a ticket that is dropped gives up its place, once.
#[tokio::test]
async fn a_dropped_ticket_or_turn_is_given_up_exactly_once() {
    let (releases, mut noted) = noting();
    drop(Ticket::new(chat(), session(), 1, releases.clone()));
    assert_eq!(noted.confirm().await, ana(1));

    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 2, releases.clone()), grant(None));
    assert!(noted.is_empty(), "a ticket that became a turn is not given up");
    turn.end(LossReason::Settled);
    assert_eq!(noted.confirm().await, ana(2));

    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 3, releases.clone()), grant(None));
    let released = tokio::spawn(turn.release());
    let (release, confirm) = noted.next().await;
    assert_eq!((release.key.as_str().to_owned(), release.sequence), ana(3));
    assert!(!released.is_finished(), "a release waits for the backend");
    confirm.send(()).unwrap();
    released.await.unwrap().unwrap();
    tokio::task::yield_now().await;
    assert!(noted.is_empty(), "nothing is given up twice");
}

/// C4: whoever gives up waiting for a release does not keep the chat.
#[tokio::test]
async fn a_release_that_nobody_waits_for_any_more_goes_on() {
    let (releases, mut noted) = noting();
    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 1, releases), grant(None));
    let mut released = Box::pin(turn.release());
    assert!(released.as_mut().now_or_never().is_none());
    drop(released);
    let (_, confirm) = noted.next().await;
    tokio::task::yield_now().await;
    assert!(!confirm.is_closed(), "the release was interrupted");
    confirm.send(()).unwrap();
    tokio::task::yield_now().await;
    assert!(noted.is_empty(), "it was begun anew");
}

/// C10: a leadership that is dropped is released.
#[tokio::test]
async fn a_dropped_leadership_is_given_up() {
    let (releases, mut noted) = noting();
    let name = LeaderName::new("job").unwrap();
    let leadership = Leadership::granted(name.clone(), session(), 4, &grant(None), releases);
    assert_eq!(leadership.check(), Ok(()));
    drop(leadership);
    let (release, _confirm) = noted.next().await;
    assert_eq!((release.key, release.sequence), (CoordinationKey::from(name), 4));
}

#[tokio::test]
async fn a_release_after_the_coordinator_stopped_is_an_error_and_ends_the_turn() {
    let (releases, noted) = noting();
    drop(noted);
    let turn = ChatTurn::granted(Ticket::new(chat(), session(), 1, releases), grant(None));
    let guard = turn.guard();
    assert!(matches!(turn.release().await, Err(CoordinationError::Stopped)));
    assert_eq!(guard.check().unwrap_err().reason, LossReason::Ended);
}

/// C8: memory of a chat is current only if this incarnation held it last, with the fence that it
/// remembers.
#[tokio::test]
async fn only_the_same_incarnation_with_the_same_fence_continues() {
    let (releases, _noted) = noting();
    let session = session();
    let own = session.incarnation().clone();
    let other = IncarnationId::fresh(&ReplicaId::new("a").unwrap());
    let turn = |previous| {
        let ticket = Ticket::new(chat(), Arc::clone(&session), 1, releases.clone());
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
