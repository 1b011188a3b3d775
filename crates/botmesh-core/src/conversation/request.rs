use std::sync::Arc;
use std::time::Duration;

use crate::error::BotError;
use crate::id::Revision;
use crate::message::Reply;
use crate::provider::Receipt;
use crate::question::{Answer, Question};
use crate::store::Document;
use crate::text::Text;

/// What a conversation wants from the runtime.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Say this.
    Say(Box<Reply>),
    /// Ask this and wait for the answer.
    Ask(Arc<Question>),
    /// The answer did not do: say this and wait for another.
    AskAgain(Arc<Question>, Text),
    /// Show that the bot is writing.
    Typing,
    /// Wait without holding the chat.
    ResumeAfter(Duration),
    /// Read what is stored for the user.
    LoadUser,
    /// Replace what is stored for the user.
    SaveUser(UserDocument),
}

/// A user's data to be stored.
#[derive(Debug)]
pub struct UserDocument {
    /// JSON.
    pub body: String,
    /// The revision that is replaced.
    pub expected: Option<Revision>,
}

/// What the runtime answers to a [`Request`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Response {
    /// It was said.
    Sent(Receipt),
    /// The user answered.
    Answered(Box<Answer>),
    /// It was done, or the time has passed.
    Done,
    /// What is stored for the user.
    User(Option<Document>),
    /// Whether the user's data was replaced; otherwise somebody else was faster.
    Saved(bool),
    /// It failed.
    Failed(BotError),
}

impl Response {
    pub(super) fn unexpected(self) -> BotError {
        BotError::message(format!("the runtime answered a conversation out of turn: {self:?}"))
    }
}
