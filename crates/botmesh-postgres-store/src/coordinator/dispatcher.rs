//! Sends the operations that are ready at the same moment together, in one statement.
//!
//! No timer delays anything: an operation that comes alone goes alone, and at once. While a few
//! statements are under way, what comes meanwhile goes with the next.

use std::collections::VecDeque;
use std::sync::Arc;

use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Operation, Reply};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::batch::{Batch, Taken};
use super::calls::{BatchError, Calls, repeat};

/// So many statements with several operations are under way at once at most.
const SENDERS: usize = 2;

type Answer = Result<Reply, BackendError>;
type Waiter = oneshot::Sender<Answer>;

/// What waits to be sent, and how many tasks send it.
#[derive(Debug)]
pub(super) struct Dispatcher {
    calls: Arc<Calls>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(Operation, Waiter)>,
    senders: usize,
}

impl Dispatcher {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self { calls, queue: Mutex::default() }
    }

    /// Executes an operation over connections that live on the runtime `home`. When this is dropped
    /// before the operation was sent, it is not sent.
    pub(super) async fn send(self: &Arc<Self>, operation: &Operation, home: &Handle) -> Answer {
        let (waiter, answer) = oneshot::channel();
        if let Some(sender) = self.enter(operation.clone(), waiter) {
            home.spawn(sender.run());
        }
        answer.await.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }

    /// Lets an operation wait, and answers a further sender if there may be one.
    fn enter(self: &Arc<Self>, operation: Operation, waiter: Waiter) -> Option<Sender> {
        let mut queue = self.queue.lock();
        queue.waiting.push_back((operation, waiter));
        if queue.senders >= SENDERS {
            return None;
        }
        queue.senders += 1;
        Some(Sender { dispatcher: Arc::clone(self), has_ended: false })
    }
}

/// A task that sends until nothing waits.
struct Sender {
    dispatcher: Arc<Dispatcher>,
    has_ended: bool,
}

impl Sender {
    async fn run(mut self) {
        loop {
            // Whatever else is ready to run does so first: it may have something to send.
            tokio::task::yield_now().await;
            let Some(Taken { batch, crowd }) = self.next() else { return };
            crowd.into_iter().for_each(|one| leave_alone(&self.dispatcher.calls, one));
            carry(&self.dispatcher.calls, batch).await;
        }
    }

    fn next(&mut self) -> Option<Taken<Waiter>> {
        let mut queue = self.dispatcher.queue.lock();
        queue.waiting.retain(|(_, waiter)| !waiter.is_closed());
        let taken = Batch::take(&mut queue.waiting);
        if taken.is_none() {
            // Within the lock: whoever comes now needs a new sender.
            queue.senders -= 1;
            self.has_ended = true;
        }
        taken
    }
}

impl Drop for Sender {
    /// Its runtime has ended. What nobody will send is told so.
    fn drop(&mut self) {
        if !self.has_ended {
            let mut queue = self.dispatcher.queue.lock();
            queue.senders -= 1;
            if queue.senders == 0 {
                queue.waiting.clear();
            }
        }
    }
}

async fn carry(calls: &Arc<Calls>, batch: Batch<Waiter>) {
    let answers = match batch.is_single() {
        true => Ok(vec![None]),
        false => calls.together(&batch).await,
    };
    let parts = batch.into_parts();
    let answers = match answers {
        Ok(answers) => answers,
        // One may spoil it for the others.
        Err(BatchError::Undone) => parts.iter().map(|_| None).collect(),
        Err(BatchError::Failed(error)) => {
            let error = repeat(error);
            parts.into_iter().for_each(|(_, waiter)| tell(waiter, Err(error())));
            return;
        }
    };
    let is_single = answers.len() == 1;
    for ((operation, waiter), answer) in parts.into_iter().zip(answers) {
        match answer {
            Some(reply) => tell(waiter, Ok(reply)),
            None if is_single => alone(calls, &operation, waiter).await,
            None => leave_alone(calls, (operation, waiter)),
        }
    }
}

/// Executes an operation beside everything else.
fn leave_alone(calls: &Arc<Calls>, (operation, waiter): (Operation, Waiter)) {
    let calls = Arc::clone(calls);
    tokio::spawn(async move { alone(&calls, &operation, waiter).await });
}

async fn alone(calls: &Calls, operation: &Operation, waiter: Waiter) {
    tell(waiter, calls.one(calls.driver(), operation, "").await);
}

fn tell(waiter: Waiter, answer: Answer) {
    // Whoever waited may have given up.
    let _ = waiter.send(answer);
}

#[cfg(test)]
mod tests;
