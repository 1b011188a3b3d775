//! Gives up what guards held, and repeats what fails.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::backend::{Backend, BackendError};
use super::shared::{Phase, Shared};
use super::tickets::Closed;
use crate::coordination::transition::{Operation, Reply, TicketId, Wakeup};
use crate::coordination::{CoordinatorEvent, LossReason, Release, Releaser, SessionLease};

impl<B: Backend> Releaser for Shared<B> {
    fn give_up(self: Arc<Self>, release: Release) -> BoxFuture<'static, ()> {
        async move { give_up(&self, release).await }.boxed()
    }
}

/// Gives up one ticket. A failed attempt is repeated until the session ends, which releases the
/// ticket at the backend too.
async fn give_up<B: Backend>(shared: &Shared<B>, release: Release) {
    let Release { key, session, sequence } = release;
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
