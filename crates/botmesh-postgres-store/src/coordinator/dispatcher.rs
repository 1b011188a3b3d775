//! Sends the operations that are ready at the same moment together, in one statement.
//!
//! Operations on keys for which others compete go in statements of their own, to the functions that
//! know about queues.

use std::collections::HashSet;
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
use crate::lines::{self, Line, tell};

/// So many contended keys are remembered.
const MOST_CONTENDED: usize = 10_000;

type Answer = Result<Reply, BackendError>;
type Waiter = oneshot::Sender<Answer>;
type Part = lines::Part<Operation, Answer>;
type Sender = lines::Sender<Operation, Answer>;

/// What waits to be sent, in two ways.
#[derive(Debug)]
pub(super) struct Dispatcher {
    calls: Arc<Calls>,
    /// On keys that nobody waits for, as far as is known.
    usual: Arc<Line<Operation, Answer>>,
    /// On keys for which others compete.
    crowded: Arc<Line<Operation, Answer>>,
    /// Keys that were not free when they were last asked for.
    contended: Mutex<HashSet<CoordinationKey>>,
}

impl Dispatcher {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        let (usual, crowded) = (Arc::default(), Arc::default());
        Self { calls, usual, crowded, contended: Mutex::default() }
    }

    /// Executes an operation over connections that live on the runtime `home`. When this is dropped
    /// before the operation was sent, it is not sent.
    pub(super) async fn send(self: &Arc<Self>, operation: &Operation, home: &Handle) -> Answer {
        let (waiter, answer) = oneshot::channel();
        let part = (operation.clone(), waiter);
        if self.is_contended(operation) {
            if let Some(sender) = self.crowded.enter([part]) {
                home.spawn(Arc::clone(self).run_crowded(sender));
            }
        } else if let Some(sender) = self.usual.enter([part]) {
            home.spawn(Arc::clone(self).run_usual(sender));
        }
        answer.await.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }

    fn is_contended(&self, operation: &Operation) -> bool {
        operation.key().is_some_and(|key| self.contended.lock().contains(key))
    }

    /// Leaves operations to those that send to the functions.
    fn crowd(self: &Arc<Self>, parts: Vec<Part>) {
        if let Some(sender) = self.crowded.enter(parts) {
            Handle::current().spawn(Arc::clone(self).run_crowded(sender));
        }
    }

    async fn run_usual(self: Arc<Self>, mut sender: Sender) {
        while let Some(Taken { batch, crowd }) = sender.next(Batch::take).await {
            self.crowd(crowd);
            self.carry(batch).await;
        }
    }

    async fn run_crowded(self: Arc<Self>, mut sender: Sender) {
        while let Some(crowd) = sender.next(Crowd::take).await {
            self.carry_crowd(crowd).await;
        }
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
        let mut contended = self.contended.lock();
        match reply {
            Reply::Queued { .. } | Reply::Released { next: Some(_) } => {
                if contended.len() >= MOST_CONTENDED {
                    contended.clear();
                }
                contended.insert(key.clone());
            }
            Reply::Granted(_) => {
                contended.remove(key);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
