use std::time::Duration;

use super::running::RunningBot;
use crate::error::BotError;
use crate::id::{ChatKey, Position};
use crate::message::Message;
use crate::store::InboxStore;

/// A message, or the wake-up of a conversation, that could not be processed in all its attempts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its chat.
    pub chat: ChatKey,
    /// Its place in the inbox of the chat.
    pub position: Position,
    /// The message; none for a wake-up, and when what the inbox has of it cannot be read.
    pub message: Option<Message>,
    /// How often it was tried.
    pub attempts: u32,
    /// What the last attempt failed with.
    pub error: String,
    /// How long ago it was given up.
    pub age: Duration,
}

/// What is done about messages that could not be processed.
impl RunningBot {
    /// The dead letters in the order of their chats and positions, at most `limit` of them, from
    /// the one behind `after` on.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError), or when the bot has no durability.
    pub async fn dead_letters(
        &self,
        after: Option<&DeadLetter>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, BotError> {
        let after = after.map(|letter| (&letter.chat, letter.position));
        let found = self.inbox()?.dead_letters(after, limit).await?;
        let read = |letter: crate::store::DeadLetter| DeadLetter {
            message: serde_json::from_str(&letter.body).ok(),
            chat: letter.chat,
            position: letter.position,
            attempts: letter.attempts,
            error: letter.error,
            age: letter.age,
        };
        Ok(found.into_iter().map(read).collect())
    }

    /// Has a dead letter processed again, before what its chat has waiting. What was sent for it
    /// is not sent again. False when there is no such dead letter any more.
    ///
    /// # Errors
    /// As [`dead_letters`](Self::dead_letters).
    pub async fn replay(&self, letter: &DeadLetter) -> Result<bool, BotError> {
        let revived = self.inbox()?.revive(&letter.chat, letter.position).await?;
        self.runtime.look_for_records();
        Ok(revived)
    }

    fn inbox(&self) -> Result<&dyn InboxStore, BotError> {
        self.runtime.inbox().ok_or_else(|| {
            BotError::message("the bot keeps no dead letters: give it `Bot::durability`")
        })
    }
}
