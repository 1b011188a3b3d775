//! Keeps a session: registers an incarnation, renews its lease, and registers another when the
//! lease was lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::backend::{Backend, BackendError};
use super::shared::{Live, Phase, Shared, unavailable};
use crate::coordination::transition::{Operation, Reply};
use crate::coordination::{
    CoordinationError, CoordinatorEvent, LeaseMoment, LossReason, SessionLease,
};
use crate::id::IncarnationId;

/// So many touches are under way at the same time.
const TOUCHES: usize = 64;

/// Proves that the bot's runtime makes progress, to a keeper on a thread of its own.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicU64);

impl Progress {
    /// Notes that the runtime runs.
    pub(super) async fn prove<B: Backend>(self: Arc<Self>, shared: Arc<Shared<B>>) {
        loop {
            self.0.store(shared.clock.now().to_bits(), Ordering::Release);
            tokio::time::sleep(shared.settings.lease() / 20).await;
        }
    }

    fn stands_still<B: Backend>(&self, shared: &Shared<B>) -> bool {
        LeaseMoment::from_bits(self.0.load(Ordering::Acquire))
            .is_some_and(|last| shared.clock.now().since(last) > shared.settings.lease() / 2)
    }
}

/// Runs until the coordinator stops. The first registration is reported to `first`.
pub(super) async fn keep<B: Backend>(
    shared: Arc<Shared<B>>,
    first: oneshot::Sender<Result<(), CoordinationError>>,
    progress: Option<Arc<Progress>>,
) {
    let mut first = Some(first);
    let mut backoff = shared.backoff();
    let mut gone: Option<IncarnationId> = None;
    loop {
        match register(&shared, gone.as_ref()).await {
            Ok(live) => {
                gone = Some(live.lease.incarnation().clone());
                backoff = shared.backoff();
                shared.live.modify(|phase| {
                    if !matches!(phase, Phase::Stopped) {
                        *phase = Phase::Live(Arc::clone(&live));
                    }
                });
                if let Some(first) = first.take() {
                    let _ = first.send(Ok(()));
                }
                // A renewal never waits for the touches, which are as many as chats are held.
                tokio::select! {
                    biased;
                    () = renew_until_lost(&shared, &live, progress.as_deref()) => {}
                    never = touch_at_times(&shared, &live) => match never {},
                }
                if !lose(&shared, &live) {
                    return;
                }
            }
            Err(BackendError::Unfit(reason)) => {
                if let Some(first) = first.take() {
                    let _ = first.send(Err(CoordinationError::Unfit { reason: reason.clone() }));
                }
                shared.live.replace(Phase::Unfit(reason));
                return;
            }
            Err(BackendError::Refused(source) | BackendError::Unknown(source)) => {
                if let Some(first) = first.take() {
                    let _ = first.send(Err(unavailable("register", source)));
                }
                tokio::time::sleep(backoff.step()).await;
            }
        }
    }
}

async fn register<B: Backend>(
    shared: &Shared<B>,
    gone: Option<&IncarnationId>,
) -> Result<Arc<Live>, BackendError> {
    if let Some(gone) = gone {
        // What it held has ended here; the others need not wait for its lease.
        shared.send(&Operation::Stop { incarnation: gone.clone() }).await?;
    }
    loop {
        let incarnation = IncarnationId::fresh(&shared.replica);
        // Counted from before anything is sent, and started only when it is known to be so.
        let sent = shared.clock.now();
        let lease = shared.settings.lease();
        let session = SessionLease::new(incarnation.clone(), shared.clock, lease, sent);
        shared.tickets.expect(Arc::clone(&session));
        match shared.backend.listen(&incarnation, shared.sink()).await {
            Err(unfit @ BackendError::Unfit(_)) => return Err(unfit),
            Err(_) => shared.sink().disconnected(),
            Ok(()) => {}
        }
        let register = Operation::Register { incarnation, lease };
        match shared.send(&register).await? {
            Reply::Registered { shortest, longest } if session.loss().is_none() => {
                if shortest != longest && !shared.settings.allow_for(longest) {
                    shared.emit(CoordinatorEvent::LeasesDiffer { shortest, longest });
                }
                return Ok(Live::new(session, sent));
            }
            // The name is taken, perhaps by ourselves when the answer was lost.
            _ => {}
        }
    }
}

async fn renew_until_lost<B: Backend>(
    shared: &Shared<B>,
    live: &Live,
    progress: Option<&Progress>,
) {
    let heartbeat = shared.settings.heartbeat();
    let mut pause = heartbeat;
    loop {
        tokio::select! {
            biased;
            _ = live.lease.ended() => return,
            () = tokio::time::sleep(pause) => {}
            () = shared.doubt.notified() => {}
        }
        if progress.is_some_and(|progress| progress.stands_still(shared)) {
            // Work under the turns may be stuck for ever; somebody else shall have the chats.
            live.lease.end(LossReason::Expired);
            return;
        }
        pause = match shared.renew(live).await {
            Ok(_) => heartbeat,
            Err(_) => heartbeat / 10,
        };
    }
}

async fn touch_at_times<B: Backend>(shared: &Shared<B>, live: &Live) -> Infallible {
    let mut path = shared.path.watch();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(shared.settings.heartbeat()) => {
                touch(shared, live, shared.settings.lease() * 5).await;
            }
            // A server that took over, or that was restored, may know the session and have
            // forgotten the last grants. Its grace is the time to find that out.
            () = path.changed() => {
                if path.get().connected {
                    touch(shared, live, Duration::ZERO).await;
                }
            }
        }
    }
}

/// Keeps the records of holds that were not confirmed for `age`, which would be forgotten as left
/// behind by the dead.
async fn touch<B: Backend>(shared: &Shared<B>, live: &Live, age: Duration) {
    let old = shared.tickets.touch_older(age, shared.clock.now());
    for some in old.chunks(TOUCHES) {
        let touches = some.iter().map(|open| async move {
            let ticket = live.ticket(open.sequence);
            let touch = Operation::Touch { key: open.key.clone(), ticket };
            match shared.send(&touch).await {
                // A guard closes its ticket before it sends the release, so a ticket that is still
                // held here was taken away: the backend has lost records, and all that it granted
                // is in doubt.
                Ok(Reply::NotHolder) if shared.tickets.is_held(open.sequence) => {
                    live.lease.end(LossReason::Superseded);
                }
                _ => {}
            }
        });
        join_all(touches).await;
    }
}

/// Reports what was lost with a session. Answers whether to register another.
fn lose<B: Backend>(shared: &Shared<B>, live: &Live) -> bool {
    let reason = live.lease.loss().unwrap_or(LossReason::Expired);
    live.lease.end(reason);
    let stopped = matches!(shared.live.get(), Phase::Stopped);
    if stopped {
        return false;
    }
    shared.live.modify(|phase| {
        if !matches!(phase, Phase::Stopped) {
            *phase = Phase::Registering;
        }
    });
    for key in shared.tickets.lose_all(live.lease.incarnation(), LossReason::Superseded) {
        if let Some(name) = key.leader() {
            shared.emit(CoordinatorEvent::Follower { name, reason });
        }
        shared.emit(CoordinatorEvent::LeaseLost { key, reason });
    }
    true
}
