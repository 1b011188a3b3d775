//! Drains the queue of guards that were dropped or released, and repeats what fails.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::backend::{Backend, BackendError};
use super::shared::{Phase, Shared};
use super::tickets::Closed;
use crate::coordination::transition::{Operation, Reply, TicketId, Wakeup};
use crate::coordination::{CoordinatorEvent, LossReason, Release, SessionLease};

/// Runs until the last guard and the coordinator itself are gone.
pub(super) async fn drain<B: Backend>(
    shared: Arc<Shared<B>>,
    mut queue: mpsc::UnboundedReceiver<Release>,
) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            release = queue.recv() => match release {
                Some(release) => {
                    let shared = Arc::clone(&shared);
                    running.spawn(async move { give_up(&shared, release).await });
                }
                None => break,
            },
            Some(_) = running.join_next() => {}
        }
    }
}

/// Gives up one ticket. A failed attempt is repeated until the session ends, which releases the
/// ticket at the backend too.
pub(super) async fn give_up<B: Backend>(shared: &Shared<B>, release: Release) {
    let Release { key, session, sequence, done } = release;
    let closed = shared.tickets.close(sequence);
    if let Some(Closed { held: true, key, .. }) = &closed
        && let Some(name) = key.leader()
    {
        shared.emit(CoordinatorEvent::Follower { name, reason: LossReason::Ended });
    }
    let ticket = TicketId { incarnation: session.incarnation().clone(), sequence };
    let release = Operation::Release { key: key.clone(), ticket };
    let mut unanswered = closed.is_some_and(|closed| closed.unanswered);
    let mut backoff = shared.backoff();
    while session.loss().is_none() {
        if unanswered {
            // The reservation was dropped on its way. It must not arrive after its release.
            unanswered = !fence_off(shared, &session).await;
        }
        if !unanswered {
            match shared.send(&release).await {
                Ok(Reply::Released { next: Some((sequence, grant)) }) => {
                    let ticket = TicketId { incarnation: session.incarnation().clone(), sequence };
                    shared.sink().wake(Wakeup { ticket, key, grant });
                    break;
                }
                Ok(_) | Err(BackendError::Unfit(_)) => break,
                Err(_) => {}
            }
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(backoff.step()) => {}
            _ = session.ended() => break,
        }
    }
    if let Some(done) = done {
        // Nobody waits any more if the future of the release was dropped.
        let _ = done.send(());
    }
}

async fn fence_off<B: Backend>(shared: &Shared<B>, session: &SessionLease) -> bool {
    let live = match shared.live.get() {
        Phase::Live(live) if live.lease.incarnation() == session.incarnation() => live,
        // Its session is gone, and no reservation of it is executed any more.
        _ => return true,
    };
    let epoch = live.epoch();
    shared.fence_off(&live, epoch).await.is_ok()
}
