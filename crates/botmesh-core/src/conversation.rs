//! Conversations as ordinary asynchronous functions that await answers.
//!
//! A function never acts by itself: each call on its [`Conversation`] is a request that the
//! runtime takes from the [`Script`], carries out under the chat's turn, and answers. While the
//! function waits for the user it is parked; nothing polls it.

mod request;
mod script;

pub use request::{Request, Response, UserDocument};
pub use script::{Next, Panicked, Script};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::error::BotError;
use crate::message::Reply;
use crate::provider::Receipt;
use crate::question::{Answer, Invalid, Question};
use script::Stage;

/// The function's side of a conversation: everything that it says, asks and keeps goes through
/// it. One call at a time; what the function awaits elsewhere is its own business and stands still
/// while it waits for the user.
#[derive(Clone)]
pub struct Conversation {
    stage: Arc<Stage>,
}

/// Why a conversation cannot go on. Left to `?`, each ends the conversation: the user is told the
/// built-in text for it, and no error is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConversationEnded {
    /// Nobody answered in time.
    #[error("the question was not answered in time")]
    TimedOut,
    /// The question was answered wrongly as often as it may be.
    #[error("the question was answered wrongly too often")]
    TooManyAttempts,
    /// The user said a cancel word.
    #[error("the user cancelled the conversation")]
    Cancelled,
}

impl ConversationEnded {
    /// The key of the text that tells the user.
    pub(crate) const fn text_key(self) -> &'static str {
        match self {
            Self::TimedOut => "core.conversation.timeout",
            Self::TooManyAttempts => "core.answer.too-many",
            Self::Cancelled => "core.conversation.cancelled",
        }
    }
}

/// Two calls on one conversation were awaited at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a conversation does one thing at a time: await one call before the next")]
pub struct Overlapping;

impl Conversation {
    /// Says something.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError) when it cannot be sent.
    pub async fn say(&self, reply: impl Into<Reply>) -> Result<Receipt, BotError> {
        match self.request(Request::Say(Box::new(reply.into()))).await? {
            Response::Sent(receipt) => Ok(receipt),
            other => Err(other.unexpected()),
        }
    }

    /// Asks, and waits for the next message of the chat. The turn is given back meanwhile.
    ///
    /// # Errors
    /// [`ConversationEnded`] when nobody answers in time or the user cancels;
    /// [`SendError`](crate::provider::SendError) when the question cannot be sent.
    pub async fn ask(&self, question: impl Into<Question>) -> Result<Answer, BotError> {
        match self.request(Request::Ask(Arc::new(question.into()))).await? {
            Response::Answered(answer) => Ok(*answer),
            other => Err(other.unexpected()),
        }
    }

    /// Asks until `read` accepts the answer, as often as the question's
    /// [`retry`](Question::retry) allows, and returns what was read.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), and [`ConversationEnded::TooManyAttempts`].
    pub async fn ask_for<T>(
        &self,
        question: impl Into<Question>,
        read: impl Fn(&Answer) -> Result<T, Invalid> + Send,
    ) -> Result<T, BotError> {
        let question = Arc::new(question.into());
        let mut attempt = 1;
        let mut request = Request::Ask(Arc::clone(&question));
        loop {
            let answer = match self.request(request).await? {
                Response::Answered(answer) => *answer,
                other => return Err(other.unexpected()),
            };
            let invalid = match read(&answer) {
                Ok(value) => return Ok(value),
                Err(invalid) => invalid,
            };
            if question.attempts().is_some_and(|most| attempt >= most) {
                return Err(ConversationEnded::TooManyAttempts.into());
            }
            attempt += 1;
            let why = question.why_invalid(&invalid);
            request = Request::AskAgain(Arc::clone(&question), why);
        }
    }

    /// Does `work` of the outside world under a name. What it returns is recorded where
    /// conversations are, so that it is not done again when the conversation is handed over.
    ///
    /// # Errors
    /// What `work` fails with.
    pub async fn run<F, T, E>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> F,
    ) -> Result<T, BotError>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<BotError>,
    {
        tracing::trace!(name, "conversation work");
        work().await.map_err(Into::into)
    }

    /// Shows for a short while that the bot is writing. Nothing happens where a platform has no
    /// such sign.
    ///
    /// # Errors
    /// [`SendError`](crate::provider::SendError) when the platform fails.
    pub async fn typing(&self) -> Result<(), BotError> {
        self.request(Request::Typing).await.map(drop)
    }

    /// Pauses while holding the chat: messages that arrive meanwhile wait. For seconds, to give
    /// the user time to read; for longer pauses there is [`resume_after`](Self::resume_after).
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Stands still for `duration` without holding the chat: messages that arrive meanwhile are
    /// handled as if there were no conversation.
    ///
    /// # Errors
    /// [`ConversationEnded::Cancelled`] when the user cancels meanwhile.
    pub async fn resume_after(&self, duration: Duration) -> Result<(), BotError> {
        self.request(Request::ResumeAfter(duration)).await.map(drop)
    }

    /// What was stored for the user, or the default.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError), or that of serde when the stored data is no `T`.
    pub async fn user<T: DeserializeOwned + Default>(&self) -> Result<T, BotError> {
        match self.request(Request::LoadUser).await? {
            Response::User(None) => Ok(T::default()),
            Response::User(Some(document)) => Ok(serde_json::from_str(&document.body)?),
            other => Err(other.unexpected()),
        }
    }

    /// Changes what is stored for the user; `change` runs again when somebody else changed it
    /// meanwhile.
    ///
    /// # Errors
    /// As [`user`](Self::user).
    pub async fn update_user<T>(&self, mut change: impl FnMut(&mut T) + Send) -> Result<T, BotError>
    where
        T: Serialize + DeserializeOwned + Default + Send,
    {
        loop {
            let stored = match self.request(Request::LoadUser).await? {
                Response::User(stored) => stored,
                other => return Err(other.unexpected()),
            };
            let mut data: T = match &stored {
                None => T::default(),
                Some(document) => serde_json::from_str(&document.body)?,
            };
            change(&mut data);
            let body = serde_json::to_string(&data)?;
            let expected = stored.map(|document| document.revision);
            match self.request(Request::SaveUser(UserDocument { body, expected })).await? {
                Response::Saved(true) => return Ok(data),
                Response::Saved(false) => {}
                other => return Err(other.unexpected()),
            }
        }
    }

    async fn request(&self, request: Request) -> Result<Response, BotError> {
        self.stage.perform(request).await
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Conversation")
    }
}
