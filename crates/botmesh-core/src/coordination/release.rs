use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::error::CoordinationError;
use super::key::CoordinationKey;
use super::session::SessionLease;

/// Where guards put what they give up. Dropping a guard cannot wait for a backend, so it leaves a
/// [`Release`] here for the coordinator's task; the queue has no bound, for a release must never
/// be lost.
#[derive(Debug, Clone)]
pub struct ReleaseQueue(mpsc::UnboundedSender<Release>);

/// A ticket whose turn, leadership or place in the queue is given up.
#[derive(Debug)]
pub struct Release {
    /// The chat or leadership.
    pub key: CoordinationKey,
    /// The lease under which it was reserved.
    pub session: Arc<SessionLease>,
    /// Its number within the incarnation.
    pub sequence: u64,
    /// Told when the backend has confirmed; nobody listens after a drop.
    pub done: Option<oneshot::Sender<()>>,
}

impl ReleaseQueue {
    /// A queue and the end from which the coordinator's task drains it.
    #[must_use]
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Release>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Puts one release into the queue.
    pub fn put(&self, release: Release) {
        // After the coordinator's task has ended, its session is stopped and nothing is held.
        let _ = self.0.send(release);
    }
}

/// One reserved ticket, given up exactly once: when it is released or dropped.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) key: CoordinationKey,
    pub(super) session: Arc<SessionLease>,
    pub(super) sequence: u64,
    queue: Option<ReleaseQueue>,
}

impl Claim {
    pub(super) const fn new(
        key: CoordinationKey,
        session: Arc<SessionLease>,
        sequence: u64,
        queue: ReleaseQueue,
    ) -> Self {
        Self { key, session, sequence, queue: Some(queue) }
    }

    fn give_up(&mut self, done: Option<oneshot::Sender<()>>) {
        if let Some(queue) = self.queue.take() {
            let (key, session) = (self.key.clone(), Arc::clone(&self.session));
            queue.put(Release { key, session, sequence: self.sequence, done });
        }
    }

    pub(super) fn comes_from(&self, queue: &ReleaseQueue) -> bool {
        self.queue.as_ref().is_some_and(|own| own.0.same_channel(&queue.0))
    }

    pub(super) async fn release(mut self) -> Result<(), CoordinationError> {
        let (sender, done) = oneshot::channel();
        self.give_up(Some(sender));
        done.await.map_err(|_| CoordinationError::Stopped)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_up(None);
    }
}
