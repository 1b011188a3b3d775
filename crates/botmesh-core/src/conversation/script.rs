use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use parking_lot::Mutex;
use thiserror::Error;

use super::{Conversation, Overlapping, Request, Response};
use crate::error::BotError;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A conversation's function in progress, as the runtime drives it.
///
/// Take what it wants with [`next`](Self::next), answer with [`supply`](Self::supply), and so on
/// until it has finished. Dropping it ends the function where it stands.
pub struct Script {
    function: BoxFuture<Result<(), BotError>>,
    stage: Arc<Stage>,
}

/// What a [`Script`] came to.
#[derive(Debug)]
pub enum Next {
    /// It wants this, and cannot go on before it is supplied.
    Request(Request),
    /// It has ended. A panic is an error.
    Finished(Result<(), BotError>),
}

/// User code panicked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("user code panicked: {0}")]
pub struct Panicked(String);

impl Panicked {
    /// Reads what a panic carried.
    #[must_use]
    pub fn new(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_else(|| "no message".to_owned()))
    }
}

impl Script {
    /// Prepares `function`; nothing of it runs before the first [`next`](Self::next).
    pub fn new<F, T>(function: impl FnOnce(Conversation) -> F) -> Self
    where
        F: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        let stage = Arc::new(Stage { slot: Mutex::new(Slot::Idle) });
        let future = function(Conversation { stage: Arc::clone(&stage) });
        let caught = AssertUnwindSafe(future).catch_unwind();
        let function = Box::pin(async move {
            match caught.await {
                Ok(result) => result.map(drop),
                Err(payload) => Err(Panicked::new(payload.as_ref()).into()),
            }
        });
        Self { function, stage }
    }

    /// Runs the function until it wants something or ends. Safe to cancel: the next call goes on.
    pub async fn next(&mut self) -> Next {
        poll_fn(|context| {
            if let Poll::Ready(result) = self.function.as_mut().poll(context) {
                return Poll::Ready(Next::Finished(result));
            }
            match self.stage.take_request() {
                Some(request) => Poll::Ready(Next::Request(request)),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Answers the request that [`next`](Self::next) gave.
    pub fn supply(&self, response: Response) {
        self.stage.respond(response);
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

/// Where a conversation and the runtime meet: one request or response at a time.
pub(super) struct Stage {
    slot: Mutex<Slot>,
}

enum Slot {
    Idle,
    Requested(Request),
    Taken,
    Waiting(Waker),
    Responded(Response),
}

impl Stage {
    pub(super) async fn perform(&self, request: Request) -> Result<Response, BotError> {
        {
            let mut slot = self.slot.lock();
            if !matches!(*slot, Slot::Idle) {
                return Err(Overlapping.into());
            }
            *slot = Slot::Requested(request);
        }
        let _reset = ResetOnDrop(self);
        match poll_fn(|context| self.poll_response(context)).await {
            Response::Failed(error) => Err(error),
            other => Ok(other),
        }
    }

    fn poll_response(&self, context: &Context<'_>) -> Poll<Response> {
        let mut slot = self.slot.lock();
        match std::mem::replace(&mut *slot, Slot::Idle) {
            Slot::Responded(response) => return Poll::Ready(response),
            Slot::Requested(request) => *slot = Slot::Requested(request),
            // The runtime polls the whole function after a response, but a combinator in between
            // polls this call only when it is woken.
            _ => *slot = Slot::Waiting(context.waker().clone()),
        }
        Poll::Pending
    }

    fn take_request(&self) -> Option<Request> {
        let mut slot = self.slot.lock();
        match std::mem::replace(&mut *slot, Slot::Idle) {
            Slot::Requested(request) => {
                *slot = Slot::Taken;
                Some(request)
            }
            other => {
                *slot = other;
                None
            }
        }
    }

    fn respond(&self, response: Response) {
        let mut slot = self.slot.lock();
        if let Slot::Waiting(waker) = std::mem::replace(&mut *slot, Slot::Responded(response)) {
            drop(slot);
            waker.wake();
        }
    }
}

/// A call that is dropped before its response came must not leave its request behind.
struct ResetOnDrop<'a>(&'a Stage);

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        *self.0.slot.lock() = Slot::Idle;
    }
}
