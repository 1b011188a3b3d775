//! Sends the operations that are ready at the same moment together, in one statement.
//!
//! No timer delays anything: an operation that comes alone goes alone, and at once. While a few
//! statements are under way, what comes meanwhile goes with the next. Operations on keys for which
//! others compete go in statements of their own, to the functions that know about queues.

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
use super::crowd::Crowd;

/// So many statements with several operations are under way at once at most, of each way.
const SENDERS: usize = 2;
/// So many contended keys are remembered.
const MOST_CONTENDED: usize = 10_000;

type Answer = Result<Reply, BackendError>;
type Waiter = oneshot::Sender<Answer>;
type Part = (Operation, Waiter);

/// What waits to be sent, and how many tasks send it.
#[derive(Debug)]
pub(super) struct Dispatcher {
    calls: Arc<Calls>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// On keys that nobody waits for, as far as is known.
    usual: Line,
    /// On keys for which others compete.
    crowded: Line,
    /// Keys that were not free when they were last asked for.
    contended: HashSet<CoordinationKey>,
}

/// What waits to be sent in one way.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Part>,
    senders: usize,
}

/// Which of the lines.
#[derive(Debug, Clone, Copy)]
enum Way {
    Usual,
    Crowded,
}

impl Queue {
    const fn line(&mut self, way: Way) -> &mut Line {
        match way {
            Way::Usual => &mut self.usual,
            Way::Crowded => &mut self.crowded,
        }
    }
}

impl Dispatcher {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self { calls, queue: Mutex::default() }
    }

    /// Executes an operation over connections that live on the runtime `home`. When this is dropped
    /// before the operation was sent, it is not sent.
    pub(super) async fn send(self: &Arc<Self>, operation: &Operation, home: &Handle) -> Answer {
        let (waiter, answer) = oneshot::channel();
        if let Some(sender) = self.enter(operation, waiter) {
            home.spawn(sender.run());
        }
        answer.await.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }

    /// Leaves an operation to the senders, of which there may be one more.
    fn enter(self: &Arc<Self>, operation: &Operation, waiter: Waiter) -> Option<Sender> {
        let mut queue = self.queue.lock();
        let is_contended = operation.key().is_some_and(|key| queue.contended.contains(key));
        let way = if is_contended { Way::Crowded } else { Way::Usual };
        queue.line(way).waiting.push_back((operation.clone(), waiter));
        self.begin(&mut queue, way)
    }

    /// Leaves operations to those that send to the functions.
    fn crowd(self: &Arc<Self>, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        let sender = {
            let mut queue = self.queue.lock();
            queue.crowded.waiting.extend(parts);
            self.begin(&mut queue, Way::Crowded)
        };
        if let Some(sender) = sender {
            Handle::current().spawn(sender.run());
        }
    }

    fn begin(self: &Arc<Self>, queue: &mut Queue, way: Way) -> Option<Sender> {
        let line = queue.line(way);
        (line.senders < SENDERS).then(|| {
            line.senders += 1;
            Sender { dispatcher: Arc::clone(self), way, has_ended: false }
        })
    }

    async fn carry(self: &Arc<Self>, batch: Batch<Waiter>) {
        if batch.is_single() {
            return self.execute_all(batch.into_parts()).await;
        }
        let answers = self.calls.together(&batch).await;
        let Some((parts, answers)) = self.settle(batch.into_parts(), answers) else { return };
        let mut crowd = Vec::new();
        for (part, answer) in parts.into_iter().zip(answers) {
            match answer {
                Some(reply) => tell(part.1, Ok(reply)),
                None => crowd.push(part),
            }
        }
        self.crowd(crowd);
    }

    async fn carry_crowd(self: &Arc<Self>, crowd: Crowd<Waiter>) {
        if crowd.is_single() {
            return self.execute_all(crowd.into_parts()).await;
        }
        let answers = self.calls.in_turn(&crowd).await;
        let Some((parts, answers)) = self.settle(crowd.into_parts(), answers) else { return };
        for ((operation, waiter), reply) in parts.into_iter().zip(answers) {
            self.note(&operation, &reply);
            tell(waiter, Ok(reply));
        }
    }

    /// The operations with their answers, unless there are none.
    fn settle<A>(
        self: &Arc<Self>,
        parts: Vec<Part>,
        answers: Result<Vec<A>, BatchError>,
    ) -> Option<(Vec<Part>, Vec<A>)> {
        match answers {
            Ok(answers) => return Some((parts, answers)),
            // One may spoil it for the others.
            Err(BatchError::Undone) => {
                for part in parts {
                    let dispatcher = Arc::clone(self);
                    Handle::current().spawn(async move { dispatcher.execute(part).await });
                }
            }
            Err(BatchError::Failed(error)) => {
                let error = repeat(error);
                parts.into_iter().for_each(|(_, waiter)| tell(waiter, Err(error())));
            }
        }
        None
    }

    async fn execute_all(&self, parts: Vec<Part>) {
        for part in parts {
            self.execute(part).await;
        }
    }

    async fn execute(&self, (operation, waiter): Part) {
        let answer = self.calls.one(self.calls.driver(), &operation, "").await;
        if let Ok(reply) = &answer {
            self.note(&operation, reply);
        }
        tell(waiter, answer);
    }

    /// Notes whether others compete for a key. To be wrong costs a round trip, no more.
    fn note(&self, operation: &Operation, reply: &Reply) {
        let Some(key) = operation.key() else { return };
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

/// A task that sends in one way until nothing waits.
struct Sender {
    dispatcher: Arc<Dispatcher>,
    way: Way,
    has_ended: bool,
}

impl Sender {
    async fn run(mut self) {
        loop {
            // Whatever else is ready to run does so first: it may have something to send.
            tokio::task::yield_now().await;
            match self.way {
                Way::Usual => {
                    let Some(Taken { batch, crowd }) = self.next(Batch::take) else { return };
                    self.dispatcher.crowd(crowd);
                    self.dispatcher.carry(batch).await;
                }
                Way::Crowded => {
                    let Some(crowd) = self.next(Crowd::take) else { return };
                    self.dispatcher.carry_crowd(crowd).await;
                }
            }
        }
    }

    fn next<T>(&mut self, take: impl Fn(&mut VecDeque<Part>) -> Option<T>) -> Option<T> {
        let mut queue = self.dispatcher.queue.lock();
        let line = queue.line(self.way);
        line.waiting.retain(|(_, waiter)| !waiter.is_closed());
        let taken = take(&mut line.waiting);
        if taken.is_none() {
            // Within the lock: whoever comes now needs a new sender.
            line.senders -= 1;
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
            let line = queue.line(self.way);
            line.senders -= 1;
            if line.senders == 0 {
                line.waiting.clear();
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
