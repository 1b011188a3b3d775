use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use super::backend::{Backend, BackendError, PushPath, PushSink};
use super::tickets::TicketMap;
use crate::coordination::transition::{Operation, Reply, TicketId};
use crate::coordination::{
    CoordinationError, CoordinationKey, CoordinatorEvent, CoordinatorSettings, LeaseClock,
    LeaseMoment, LossReason, Releases, SessionLease,
};
use crate::id::ReplicaId;
use crate::watched::Watched;

/// What the tasks and the callers of one running coordinator share.
#[derive(Debug)]
pub(super) struct Shared<B> {
    pub(super) backend: Arc<B>,
    pub(super) replica: ReplicaId,
    pub(super) settings: CoordinatorSettings,
    pub(super) clock: LeaseClock,
    pub(super) tickets: Arc<TicketMap>,
    pub(super) releases: Releases,
    /// The session that lives; none while one is being registered, and after the stop.
    pub(super) live: Watched<Phase>,
    pub(super) path: Watched<PushPath>,
    pub(super) events: broadcast::Sender<CoordinatorEvent>,
    /// Asks the keeper for a heartbeat now.
    pub(super) doubt: Notify,
    pub(super) sequence: AtomicU64,
}

/// Where a running coordinator stands.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// A session is being registered.
    Registering,
    /// It has one.
    Live(Arc<Live>),
    /// The backend is unfit; nothing will come of it.
    Unfit(String),
    /// It was stopped.
    Stopped,
}

/// A session and what its renewals need to know.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) lease: Arc<SessionLease>,
    epoch: AtomicU32,
    renewal: tokio::sync::Mutex<LeaseMoment>,
}

impl Live {
    pub(super) fn new(lease: Arc<SessionLease>, sent: LeaseMoment) -> Arc<Self> {
        let (epoch, renewal) = (AtomicU32::new(0), tokio::sync::Mutex::new(sent));
        Arc::new(Self { lease, epoch, renewal })
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(super) fn ticket(&self, sequence: u64) -> TicketId {
        TicketId { incarnation: self.lease.incarnation().clone(), sequence }
    }
}

/// How long to wait before the next attempt: doubling, with a bound.
pub(super) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(super) const fn new(first: Duration, most: Duration) -> Self {
        Self { next: first, most }
    }

    pub(super) fn step(&mut self) -> Duration {
        let now = self.next.min(self.most);
        self.next = (now * 2).min(self.most);
        now
    }
}

impl<B: Backend> Shared<B> {
    pub(super) fn sink(&self) -> PushSink {
        PushSink {
            tickets: Arc::clone(&self.tickets),
            releases: self.releases.clone(),
            path: self.path.clone(),
        }
    }

    pub(super) fn emit(&self, event: CoordinatorEvent) {
        // Nobody may be listening.
        let _ = self.events.send(event);
    }

    /// The back-off for repeating an operation, so that one which failed on the network is
    /// repaired within a third of the lease.
    pub(super) fn backoff(&self) -> Backoff {
        Backoff::new(Duration::from_millis(10), (self.settings.lease() / 6).min(SECOND))
    }

    /// The session that lives, waiting for one until `deadline`.
    pub(super) async fn session(&self, deadline: Instant) -> Result<Arc<Live>, CoordinationError> {
        if let Phase::Live(live) = self.live.get()
            && live.lease.loss().is_none()
        {
            return Ok(live);
        }
        let mut live = self.live.watch();
        let found = async {
            loop {
                match live.get() {
                    Phase::Live(found) if found.lease.loss().is_none() => {
                        return Ok(found);
                    }
                    Phase::Unfit(reason) => {
                        return Err(CoordinationError::Unfit { reason });
                    }
                    Phase::Stopped => return Err(CoordinationError::Stopped),
                    Phase::Registering | Phase::Live(_) => {}
                }
                live.changed().await;
            }
        };
        match tokio::time::timeout_at(deadline, found).await {
            Ok(found) => found,
            Err(_) => Err(unavailable("register", "no session could be registered".into())),
        }
    }

    /// Sends one operation and waits for a third of the lease at most.
    pub(super) async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        let patience = self.settings.lease() / 3;
        match tokio::time::timeout(patience, self.backend.send(operation)).await {
            Ok(answered) => answered,
            Err(elapsed) => Err(BackendError::Unknown(Box::new(elapsed))),
        }
    }

    /// Renews the session of `live` once.
    pub(super) async fn renew(&self, live: &Live) -> Result<Reply, BackendError> {
        let mut last = live.renewal.lock().await;
        self.renew_with(live, live.epoch(), &mut last).await
    }

    /// Renews `session` if it has not been renewed since this was called; with many that call at
    /// once, one of them does.
    pub(super) async fn renew_again(&self, session: &SessionLease) -> Result<(), BackendError> {
        let asked = self.clock.now();
        let live = match self.live.get() {
            Phase::Live(live) if live.lease.incarnation() == session.incarnation() => live,
            _ => return Ok(()),
        };
        let mut last = live.renewal.lock().await;
        if *last < asked {
            self.renew_with(&live, live.epoch(), &mut last).await?;
        }
        Ok(())
    }

    async fn renew_with(
        &self,
        live: &Live,
        epoch: u32,
        last: &mut LeaseMoment,
    ) -> Result<Reply, BackendError> {
        let sent = self.clock.now();
        let incarnation = live.lease.incarnation().clone();
        let heartbeat = Operation::Heartbeat { incarnation, epoch, age: sent.since(*last) };
        let patience = (self.settings.lease() / 3).min(live.lease.remaining());
        let answered = tokio::time::timeout(patience, self.backend.renew(&heartbeat)).await;
        let reply = answered.map_err(|elapsed| BackendError::Unknown(Box::new(elapsed)))??;
        match reply {
            Reply::Renewed | Reply::Jumped => {
                if live.lease.renew(sent) {
                    *last = sent;
                }
                if reply == Reply::Jumped {
                    self.emit(CoordinatorEvent::ClockJump);
                }
            }
            _ => live.lease.end(LossReason::Expired),
        }
        Ok(reply)
    }

    /// Makes sure that no reservation which was sent in `epoch` is executed from now on.
    pub(super) async fn fence_off(&self, live: &Live, epoch: u32) -> Result<(), BackendError> {
        let mut last = live.renewal.lock().await;
        if live.epoch() > epoch {
            return Ok(());
        }
        if let Reply::Renewed | Reply::Jumped = self.renew_with(live, epoch + 1, &mut last).await? {
            live.epoch.store(epoch + 1, Ordering::Release);
        }
        Ok(())
    }

    /// Sends a reservation until it is answered, the session ends or `deadline` has passed.
    pub(super) async fn reserve(
        &self,
        live: &Live,
        key: &CoordinationKey,
        sequence: u64,
        attempt: bool,
        deadline: Instant,
    ) -> Result<Reply, CoordinationError> {
        let mut backoff = self.backoff();
        loop {
            let epoch = live.epoch();
            let (key, ticket) = (key.clone(), live.ticket(sequence));
            let operation = if attempt {
                Operation::Attempt { key, ticket, epoch }
            } else {
                Operation::Reserve { key, ticket, epoch }
            };
            let error = match self.send(&operation).await {
                // The epoch moved on meanwhile, and this one was not executed. If it moved without
                // our knowledge, because an answer was lost, it moves once more.
                Ok(Reply::Stale) => match self.fence_off(live, epoch).await {
                    Ok(()) if live.lease.loss().is_none() => continue,
                    _ => None,
                },
                Ok(Reply::NoSession) => {
                    self.doubt.notify_one();
                    None
                }
                Ok(reply) => return Ok(reply),
                Err(BackendError::Unfit(reason)) => {
                    return Err(CoordinationError::Unfit { reason });
                }
                Err(BackendError::Refused(source)) => Some(source),
                Err(BackendError::Unknown(source)) => {
                    // Repeated only once the lost one cannot be executed any more: it might be
                    // after the ticket was used and given up. Renewals may go another way than
                    // reservations, and succeed for ever while these do not.
                    match self.fence_off(live, epoch).await {
                        Ok(()) if live.lease.loss().is_none() && Instant::now() < deadline => {
                            continue;
                        }
                        _ => Some(source),
                    }
                }
            };
            let next = Instant::now() + backoff.step();
            if next >= deadline {
                let source = error.unwrap_or_else(|| "the session is not known there".into());
                return Err(unavailable(operation.name(), source));
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(next) => {}
                _ = live.lease.ended() => return Ok(Reply::NoSession),
            }
        }
    }
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn unavailable(
    operation: &'static str,
    source: crate::error::BoxError,
) -> CoordinationError {
    CoordinationError::Unavailable { operation, source }
}
