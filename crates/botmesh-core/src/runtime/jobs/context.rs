use std::fmt;
use std::sync::Arc;

use super::super::Runtime;
use super::Attempt;
use crate::id::{ChatKey, Fence};
use crate::message::Reply;
use crate::provider::{Receipt, SendError};
use crate::text::Language;
use crate::time::Timestamp;

/// What a job is given: which occurrence it is, and a way to send.
///
/// A durable job that loses its lease is dropped where it awaits, before another replica may run
/// it. What it does to the outside can be done twice all the same, when its process dies between
/// the effect and the note that it is done: use [`key`](Self::key) with resources that know
/// idempotency keys, or [`fence`](Self::fence) with those that know fences.
#[derive(Clone)]
pub struct JobContext {
    runtime: Arc<Runtime>,
    name: Arc<str>,
    slot: Timestamp,
    attempt: u32,
    fence: Fence,
}

impl JobContext {
    pub(super) fn new(runtime: Arc<Runtime>, name: Arc<str>, attempt: &Attempt) -> Self {
        let Attempt { slot, number, fence } = *attempt;
        Self { runtime, name, slot, attempt: number, fence }
    }

    /// The name of the job.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When this occurrence was due, which may be long ago.
    #[must_use]
    pub const fn slot(&self) -> Timestamp {
        self.slot
    }

    /// Which attempt at it this is, from one.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The same for all attempts at this occurrence, and for no other.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.name, self.slot.as_millis())
    }

    /// Grows with each replica that runs durable jobs.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// Sends to a chat, outside any turn.
    ///
    /// # Errors
    /// [`SendError`]; [`ProviderNotLeader`](crate::provider::ProviderNotLeader) where the platform
    /// is connected on another replica only.
    pub async fn send(
        &self,
        chat: &ChatKey,
        reply: impl Into<Reply>,
        language: Option<&Language>,
    ) -> Result<Receipt, SendError> {
        self.runtime.sender().deliver(chat, reply.into(), language).await
    }
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext")
            .field("name", &self.name)
            .field("slot", &self.slot)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
