use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::router::BoxFuture;
use crate::error::BotError;
use crate::id::{ChatKey, ConversationName};
use crate::text::Text;

/// Longer first answers of a `do_` step are asked for again, where nothing else is set.
pub(super) const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// What becomes of a chat's conversation when another replica takes the chat.
#[must_use = "give it to `Coordination::handover`"]
#[derive(Debug, Clone)]
pub struct Handover {
    pub(super) forward: bool,
    pub(super) fallback: Fallback,
    pub(super) notify_message: Option<Text>,
    pub(super) ttl: Option<Duration>,
    pub(super) max_answer_bytes: usize,
}

/// What is done about a conversation that cannot be handed over.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Fallback {
    /// Nothing: the message is handled as a new one.
    #[default]
    Drop,
    /// The user is told that the conversation was interrupted, and the message is consumed.
    Notify,
    /// The conversation begins again, and the message is consumed.
    Restart,
    /// The function that [`Fallback::call`] was given decides.
    Call(FallbackFunction),
}

/// A function of the user that decides about a conversation that cannot be handed over.
#[derive(Clone)]
pub struct FallbackFunction(Arc<FallbackFn>);

type FallbackFn = dyn Fn(HandoverInfo, Context) -> BoxFuture<Result<bool, BotError>> + Send + Sync;

/// A conversation that cannot be handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandoverInfo {
    /// Its chat.
    pub chat: ChatKey,
    /// Its name.
    pub name: ConversationName,
    /// Why it cannot go on.
    pub reason: HandoverReason,
}

/// Why a conversation cannot be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HandoverReason {
    /// It lived in the memory of the other replica only.
    InMemory,
    /// Its flow has changed since the checkpoint was written.
    Changed,
    /// The checkpoint cannot be read.
    Unreadable,
}

impl Fallback {
    /// Lets `function` decide: it returns whether it has consumed the message.
    pub fn call<F, R>(function: F) -> Self
    where
        F: Fn(HandoverInfo, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<bool, BotError>> + Send + 'static,
    {
        Self::Call(FallbackFunction(Arc::new(move |info, context| {
            Box::pin(function(info, context))
        })))
    }
}

impl FallbackFunction {
    pub(super) fn decide(
        &self,
        info: HandoverInfo,
        context: Context,
    ) -> BoxFuture<Result<bool, BotError>> {
        (self.0)(info, context)
    }
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "Drop",
            Self::Notify => "Notify",
            Self::Restart => "Restart",
            Self::Call(_) => "Call(..)",
        })
    }
}

impl fmt::Debug for FallbackFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FallbackFunction")
    }
}

impl Default for Handover {
    fn default() -> Self {
        let max_answer_bytes = MAX_ANSWER_BYTES;
        let fallback = Fallback::default();
        Self { forward: false, fallback, notify_message: None, ttl: None, max_answer_bytes }
    }
}

impl Handover {
    /// Only persistent flows are handed over, and for the others the fallback applies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also hands over flows that are [`forwardable`](crate::Flow::forwardable): while they wait,
    /// the store has a checkpoint of them that expires.
    pub fn forward() -> Self {
        Self { forward: true, ..Self::default() }
    }

    /// What is done about a conversation that cannot be handed over.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }

    /// What [`Fallback::Notify`] tells the user; else the text `core.conversation.interrupted`.
    pub fn notify_message(mut self, text: impl Into<Text>) -> Self {
        self.notify_message = Some(text.into());
        self
    }

    /// How long a checkpoint that expires outlasts its last write; never less than the wait of the
    /// conversation. Default: the bot's conversation timeout, else 5 minutes.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The longest answer that is kept of a step that was cut; longer ones are asked for again.
    /// Default 16 KiB.
    pub const fn max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }

    /// Whether conversations that cannot be handed over leave a stub in the store.
    pub(super) const fn leaves_stubs(&self) -> bool {
        !matches!(self.fallback, Fallback::Drop)
    }
}
