use std::fmt;
use std::sync::Arc;

use super::super::Runtime;
use super::sends::JobSends;
use super::{Attempt, JobDefinition};
use crate::id::{ChatKey, Fence};
use crate::message::Reply;
use crate::provider::{Receipt, SendError, SendOptions};
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
    /// What tells its sends apart; none of plain jobs, which each replica runs.
    sends: Option<Arc<JobSends>>,
}

impl JobContext {
    pub(super) fn new(
        runtime: Arc<Runtime>,
        definition: &JobDefinition,
        attempt: &Attempt,
    ) -> Self {
        let Attempt { slot, number, fence } = *attempt;
        let name = Arc::clone(&definition.name);
        let sends = definition.job.durable.then(|| Arc::new(JobSends::new(&name, slot)));
        Self { runtime, name, slot, attempt: number, fence, sends }
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
    /// What a durable job sends has an idempotency key, made of the occurrence, the chat and the
    /// number of the send in the chat. So a platform that
    /// [knows such keys](crate::provider::Capabilities::idempotent_send) makes it once when the
    /// occurrence is run again, if each attempt sends the same things to a chat in the same order.
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
        let idempotency_key = self.sends.as_ref().map(|sends| sends.next_key(chat));
        let options = SendOptions { idempotency_key, timeout: None };
        self.runtime.sender().deliver(chat, reply.into(), language, &options).await
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
