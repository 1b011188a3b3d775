//! What holds for a whole flow.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::erase::Codec;
use super::plan::Target;
use super::{Flow, Persistence};
use crate::matcher::words;
use crate::message::Reply;

impl<S: Send + 'static> Flow<S> {
    /// How long each wait may last whose question does not say otherwise. When it is over, the
    /// run says the built-in `core.conversation.timeout` and ends, but see
    /// [`on_timeout`](Self::on_timeout). A sub-flow that has no such settings has its caller's.
    #[must_use]
    pub fn timeout(mut self, after: Duration) -> Self {
        self.plan.settings.timeout = Some(after);
        self
    }

    /// Goes on at a label when a wait has lasted too long, instead of ending.
    #[must_use]
    pub fn on_timeout(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.plan.settings.on_timeout = Some(Target::Label(label.into()));
        self
    }

    /// Goes on at a label when a question was answered wrongly as often as it may be, instead of
    /// saying the built-in `core.answer.too-many` and ending.
    #[must_use]
    pub fn on_failure(mut self, label: impl Into<Cow<'static, str>>) -> Self {
        self.plan.settings.on_failure = Some(Target::Label(label.into()));
        self
    }

    /// Says `reply` when the user is silent for `after` in a wait, once in each wait, and goes on
    /// waiting.
    #[must_use]
    pub fn idle(mut self, after: Duration, reply: impl Into<Reply>) -> Self {
        self.plan.settings.idle = Some((after, reply.into()));
        self
    }

    /// Words that cancel the flow while it waits, without regard to case: it says the built-in
    /// `core.conversation.cancelled` and ends. An offered answer of the same words is an answer.
    #[must_use]
    pub fn cancel_on<W: AsRef<str>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| words::folded(word.as_ref()));
        self.plan.settings.cancel_words.extend(words);
        self
    }

    /// Lets the usual words of the user's language cancel the flow while it waits; they are the
    /// built-in text `core.cancel.words`, separated by commas.
    #[must_use]
    pub fn cancellable(mut self) -> Self {
        self.plan.settings.cancellable = true;
        self
    }

    /// Sets apart stored runs of an earlier version, where the steps look the same but their
    /// closures mean something else.
    #[must_use]
    pub fn version(mut self, version: u32) -> Self {
        self.plan.version = version;
        self
    }

    /// Keeps the position at each wait in the bot's store, so that runs survive a restart.
    #[must_use]
    pub fn persistent(mut self) -> Self
    where
        S: Serialize + DeserializeOwned,
    {
        self.plan.codec = Some(Codec::of::<S>());
        self.plan.persistence = Persistence::Persistent;
        self
    }

    /// Lets runs be handed over to another replica, though they do not survive a restart.
    #[must_use]
    pub fn forwardable(mut self) -> Self
    where
        S: Serialize + DeserializeOwned,
    {
        self.plan.codec = Some(Codec::of::<S>());
        self.plan.persistence = self.plan.persistence.max(Persistence::Forwardable);
        self
    }
}
