//! Requests that wait to be sent, and the tasks that send them.
//!
//! No timer delays anything: a request that comes alone is sent alone, and at once. While a few
//! statements are under way, what comes meanwhile goes with the next.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// So many tasks send what waits in one line at most.
const SENDERS: usize = 2;

/// A request, and whom to answer.
pub(crate) type Part<R, A> = (R, oneshot::Sender<A>);

/// What waits to be sent in one way.
#[derive(Debug)]
pub(crate) struct Line<R, A>(Mutex<Waiting<R, A>>);

#[derive(Debug)]
struct Waiting<R, A> {
    parts: VecDeque<Part<R, A>>,
    senders: usize,
}

impl<R, A> Default for Line<R, A> {
    fn default() -> Self {
        Self(Mutex::new(Waiting { parts: VecDeque::new(), senders: 0 }))
    }
}

impl<R, A> Line<R, A> {
    /// Leaves requests to those who send, of whom there may be one more: then that one has to run.
    pub(crate) fn enter(
        self: &Arc<Self>,
        parts: impl IntoIterator<Item = Part<R, A>>,
    ) -> Option<Sender<R, A>> {
        let mut waiting = self.0.lock();
        waiting.parts.extend(parts);
        (waiting.senders < SENDERS && !waiting.parts.is_empty()).then(|| {
            waiting.senders += 1;
            Sender { line: Arc::clone(self), has_ended: false }
        })
    }
}

/// The right of one task to send until nothing waits.
#[derive(Debug)]
pub(crate) struct Sender<R, A> {
    line: Arc<Line<R, A>>,
    has_ended: bool,
}

impl<R, A> Sender<R, A> {
    /// What `take` takes of what waits, without that for which nobody waits any more. If it takes
    /// nothing, the task has to end.
    pub(crate) async fn next<T>(
        &mut self,
        take: impl FnOnce(&mut VecDeque<Part<R, A>>) -> Option<T>,
    ) -> Option<T> {
        // Whatever else is ready to run does so first: it may have something to send.
        tokio::task::yield_now().await;
        let mut waiting = self.line.0.lock();
        waiting.parts.retain(|(_, waiter)| !waiter.is_closed());
        let taken = take(&mut waiting.parts);
        if taken.is_none() {
            // Within the lock: whoever comes now needs a new sender.
            waiting.senders -= 1;
            self.has_ended = true;
        }
        taken
    }
}

impl<R, A> Drop for Sender<R, A> {
    /// Its runtime has ended. What nobody will send is told so.
    fn drop(&mut self) {
        if !self.has_ended {
            let mut waiting = self.line.0.lock();
            waiting.senders -= 1;
            if waiting.senders == 0 {
                waiting.parts.clear();
            }
        }
    }
}

/// Answers a request.
pub(crate) fn tell<A>(waiter: oneshot::Sender<A>, answer: A) {
    // Whoever waited may have given up.
    let _ = waiter.send(answer);
}
