use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Runtime;
use super::outbox::record_key;
use super::profile;
use super::sender::needs_language;
use super::turn::Turn;
use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::id::{ChatKey, MessageId};
use crate::matcher::Matched;
use crate::message::{Media, Message, RawPayload, Reply};
use crate::provider::{Capabilities, MediaStream, Receipt};
use crate::text::Language;

/// What a handler is given: the message, and everything that can be done about it.
///
/// It acts under the turn of its chat. When the handler has returned the turn ends, and a clone
/// that was kept is refused with [`LeaseLost`](crate::coordination::LeaseLost); to write later,
/// use [`RunningBot::send`](crate::RunningBot::send).
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Arc<Runtime>,
    turn: Turn,
    message: Box<Message>,
    matched: Matched,
    language: Mutex<Option<Language>>,
    enter: Mutex<Option<usize>>,
}

impl Context {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        turn: Turn,
        message: Box<Message>,
        matched: Matched,
    ) -> Self {
        let language = Mutex::new(None);
        let enter = Mutex::new(None);
        Self { inner: Arc::new(Inner { runtime, turn, message, matched, language, enter }) }
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.inner.message
    }

    /// The words of the message; empty when it has none.
    #[must_use]
    pub fn text(&self) -> &str {
        self.inner.message.body().unwrap_or_default()
    }

    /// What follows the command, when a command matched; empty otherwise.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.inner.matched.arguments()
    }

    /// A group of the regular expression that matched, from 0 for the whole.
    #[must_use]
    pub fn capture(&self, group: usize) -> Option<&str> {
        self.inner.matched.group(group)
    }

    /// The chat.
    #[must_use]
    pub fn chat(&self) -> &ChatKey {
        &self.inner.message.chat
    }

    /// The platform's own payload, where the provider keeps it.
    #[must_use]
    pub fn raw(&self) -> Option<&serde_json::Value> {
        self.inner.message.raw.as_ref().map(RawPayload::value)
    }

    /// The turn under which this context acts: its fence, and whether it still holds.
    #[must_use]
    pub fn turn(&self) -> &TurnGuard {
        &self.inner.turn
    }

    /// The turn with its record.
    pub(super) fn whole_turn(&self) -> &Turn {
        &self.inner.turn
    }

    /// The same whenever this message is processed, and different for each other one: what makes
    /// an order, a payment or a mail of the handler's own recognisable when it comes again. None
    /// without durability, where a message is processed once at most.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        let position = self.inner.turn.record()?.position();
        Some(record_key(self.chat(), position))
    }

    /// What the platform of this chat can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.inner.runtime.sender.capabilities(self.chat())
    }

    /// Says something in the chat.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError).
    pub async fn reply(&self, reply: impl Into<Reply>) -> Result<Receipt, BotError> {
        let reply = reply.into();
        let language = self.language_for(&reply).await?;
        self.inner.runtime.send(&self.inner.turn, reply, language.as_ref()).await
    }

    /// Replaces what a message of ours says.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError); `Unsupported` where messages cannot be edited.
    pub async fn edit(&self, message: &MessageId, new: impl Into<Reply>) -> Result<(), BotError> {
        let reply = new.into();
        let language = self.language_for(&reply).await?;
        Ok(self
            .inner
            .runtime
            .sender
            .edit(&self.inner.turn, message, reply, language.as_ref())
            .await?)
    }

    /// Deletes a message of ours.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError); `Unsupported` where messages cannot be deleted.
    pub async fn delete(&self, message: &MessageId) -> Result<(), BotError> {
        Ok(self.inner.runtime.sender.delete(&self.inner.turn, message).await?)
    }

    /// Reacts to the message with an emoji.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError); `Unsupported` where there are no reactions.
    pub async fn react(&self, emoji: &str) -> Result<(), BotError> {
        let Some(message) = &self.inner.message.id else {
            return Err(BotError::message("the platform gave the message no id to react to"));
        };
        Ok(self.inner.runtime.sender.react(&self.inner.turn, message, Some(emoji)).await?)
    }

    /// Opens a picture, a recording or a file that a user sent.
    ///
    /// ```
    /// # use botmesh_core::{BotError, Content, Context};
    /// # async fn keep(ctx: Context) -> Result<(), BotError> {
    /// if let Content::Media(media) = &ctx.message().content {
    ///     let picture = ctx.download(media).await?.read_all(10 << 20).await;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError); `Unsupported` where nothing can be downloaded.
    pub async fn download(&self, media: &Media) -> Result<MediaStream, BotError> {
        Ok(self.inner.runtime.sender.download(self.chat(), media).await?)
    }

    /// Shows for a short while that the bot is writing; nothing where there is no such sign.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError).
    pub async fn typing(&self) -> Result<(), BotError> {
        Ok(self.inner.runtime.sender.typing(&self.inner.turn).await?)
    }

    /// What is stored for the user who wrote, or the default. The same in every chat of the user.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError), or serde's when the stored data is no `T`.
    pub async fn user<T: DeserializeOwned + Default>(&self) -> Result<T, BotError> {
        profile::load_user(self.inner.runtime.store(), &self.inner.message.user()).await
    }

    /// Changes what is stored for the user and returns it; `change` runs again when another chat
    /// of the user was faster.
    ///
    /// # Errors
    /// As [`user`](Self::user), and [`LeaseLost`](crate::coordination::LeaseLost).
    pub async fn update_user<T>(&self, change: impl FnMut(&mut T) + Send) -> Result<T, BotError>
    where
        T: Serialize + DeserializeOwned + Default + Send,
    {
        let user = self.inner.message.user();
        profile::update_user(self.inner.runtime.store(), &self.inner.turn, &user, change).await
    }

    /// The language of the chat: the one that was set, else the message's own, else the bot's.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError).
    pub async fn language(&self) -> Result<Language, BotError> {
        let known = self.inner.language.lock().clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let runtime = &self.inner.runtime;
        let texts = runtime.sender.texts();
        let language = profile::language(runtime.store(), &self.inner.message, texts).await?;
        *self.inner.language.lock() = Some(language.clone());
        Ok(language)
    }

    /// Sets the language of the chat, whatever the platform says about it. It holds for all that
    /// is said from now on, also by a conversation that waits.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError), [`LeaseLost`](crate::coordination::LeaseLost).
    pub async fn set_language(&self, language: &Language) -> Result<(), BotError> {
        let runtime = &self.inner.runtime;
        profile::set_language(runtime.store(), &self.inner.turn, self.chat(), language).await?;
        runtime.conversations.set_language(self.chat(), language);
        *self.inner.language.lock() = Some(language.clone());
        Ok(())
    }

    /// Enters a flow or a conversation by its name once the handler has returned.
    ///
    /// # Errors
    /// When the bot has none of this name.
    pub fn enter(&self, name: &str) -> Result<(), BotError> {
        let number = self.inner.runtime.conversation_number(name)?;
        *self.inner.enter.lock() = Some(number);
        Ok(())
    }

    /// The number of the conversation to enter.
    pub(crate) fn take_entered(&self) -> Option<usize> {
        self.inner.enter.lock().take()
    }

    /// The chat's language if `reply` depends on it.
    pub(crate) async fn language_for(&self, reply: &Reply) -> Result<Option<Language>, BotError> {
        if needs_language(reply) { Box::pin(self.language()).await.map(Some) } else { Ok(None) }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("turn", &self.inner.turn).finish_non_exhaustive()
    }
}
