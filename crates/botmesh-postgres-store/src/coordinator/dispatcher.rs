//! Sends the operations that are ready at the same moment together, in one statement.
//!
//! No timer delays anything: an operation that comes alone goes alone, and at once. While a few
//! statements are under way, what comes meanwhile goes with the next. An operation on a key for which
//! others compete goes alone as well, to the function that knows about queues.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Operation, Reply};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::batch::{Batch, Taken};
use super::calls::{BatchError, Calls, repeat};

/// So many statements with several operations are under way at once at most.
const SENDERS: usize = 2;
/// So many contended keys are remembered.
const MOST_CONTENDED: usize = 10_000;

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
    /// Keys that were not free when they were last asked for.
    contended: HashSet<CoordinationKey>,
}

/// What follows from an operation that has come.
enum Entered {
    /// A sender takes it along.
    Waits,
    /// There may be one sender more.
    Starts(Sender),
    /// Nothing is to be gained by taking it along.
    GoesAlone(Waiter),
}

impl Dispatcher {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self { calls, queue: Mutex::default() }
    }

    /// Executes an operation over connections that live on the runtime `home`. When this is dropped
    /// before the operation was sent, it is not sent.
    pub(super) async fn send(self: &Arc<Self>, operation: &Operation, home: &Handle) -> Answer {
        let (waiter, answer) = oneshot::channel();
        match self.enter(operation, waiter) {
            Entered::Waits => {}
            Entered::Starts(sender) => drop(home.spawn(sender.run())),
            Entered::GoesAlone(waiter) => self.spawn(operation.clone(), waiter, home),
        }
        answer.await.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }

    fn enter(self: &Arc<Self>, operation: &Operation, waiter: Waiter) -> Entered {
        let mut queue = self.queue.lock();
        if operation.key().is_some_and(|key| queue.contended.contains(key)) {
            return Entered::GoesAlone(waiter);
        }
        queue.waiting.push_back((operation.clone(), waiter));
        if queue.senders >= SENDERS {
            return Entered::Waits;
        }
        queue.senders += 1;
        Entered::Starts(Sender { dispatcher: Arc::clone(self), has_ended: false })
    }

    async fn carry(self: &Arc<Self>, batch: Batch<Waiter>) {
        let answers = match batch.is_single() {
            true => Ok(vec![None]),
            false => self.calls.together(&batch).await,
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
                None if is_single => self.execute(&operation, waiter).await,
                None => self.spawn(operation, waiter, &Handle::current()),
            }
        }
    }

    /// Executes an operation beside everything else.
    fn spawn(self: &Arc<Self>, operation: Operation, waiter: Waiter, home: &Handle) {
        let dispatcher = Arc::clone(self);
        home.spawn(async move { dispatcher.execute(&operation, waiter).await });
    }

    async fn execute(&self, operation: &Operation, waiter: Waiter) {
        let answer = self.calls.one(self.calls.driver(), operation, "").await;
        if let (Some(key), Ok(reply)) = (operation.key(), &answer) {
            self.note(key, reply);
        }
        tell(waiter, answer);
    }

    /// Notes whether others compete for a key. To be wrong costs a round trip, no more.
    fn note(&self, key: &CoordinationKey, reply: &Reply) {
        let mut queue = self.queue.lock();
        match reply {
            Reply::Queued { .. } | Reply::Released { next: Some(_) } => {
                if queue.contended.len() >= MOST_CONTENDED {
                    queue.contended.clear();
                }
                queue.contended.insert(key.clone());
            }
            Reply::Granted(_) => {
                queue.contended.remove(key);
            }
            _ => {}
        }
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
            for (operation, waiter) in crowd {
                self.dispatcher.spawn(operation, waiter, &Handle::current());
            }
            self.dispatcher.carry(batch).await;
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

fn tell(waiter: Waiter, answer: Answer) {
    // Whoever waited may have given up.
    let _ = waiter.send(answer);
}

#[cfg(test)]
mod tests;
