//! A messaging platform in memory that a test scripts.

mod platform;
mod transcript;
mod wire;

pub use transcript::{Entry, Happening, Listener};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::id::{ChatKey, IdError, ProviderId};
use crate::message::{ButtonPress, Content, Message};
use crate::provider::{Accepted, Capabilities, DeliverError, ProviderError, Session};
use platform::{Connection, Fault, Link, Platform};

/// How long the platform holds a message for a bot that is not connected.
const PATIENCE: Duration = Duration::from_secs(60);

/// A provider without a network. A test plays the users and the platform, and reads what the bot
/// did.
///
/// Clones share everything: give one to the bot and keep one. For several replicas of one bot,
/// give each its own [`connection`](Self::another_connection) to the same platform.
///
/// ```
/// use botmesh_core::prelude::*;
/// use botmesh_core::testing::TestProvider;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BotError> {
/// let platform = TestProvider::new();
/// let bot = Bot::new(platform.clone())
///     .when("hi", |ctx| async move { ctx.reply("Hello!").await })
///     .start()
///     .await?;
///
/// let ana = platform.chat("ana");
/// let mut heard = platform.listen(&ana);
/// platform.says(&ana, "hi").await?;
/// assert_eq!(heard.next_message().await.text, "Hello!");
/// # drop(bot);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TestProvider {
    platform: Arc<Platform>,
    connection: Arc<Connection>,
}

/// Why a step of a script could not be done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// No bot was connected for a minute.
    #[error("no bot is connected: start one with this provider, or restore the connection")]
    NotConnected,
    /// The bot did not take the message.
    #[error(transparent)]
    Refused(#[from] DeliverError),
    /// The chat shows no such button.
    #[error("{chat} shows no button {label:?}: it shows {offered:?}")]
    NoButton {
        /// The chat.
        chat: ChatKey,
        /// The label that was looked for.
        label: String,
        /// The labels that are shown, newest message first.
        offered: Vec<String>,
    },
    /// The user has said nothing yet.
    #[error("{chat} has said nothing yet that could come twice")]
    NothingSaid {
        /// The chat.
        chat: ChatKey,
    },
}

impl Default for TestProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl TestProvider {
    /// A platform with the id `test` that can do everything but honour idempotency keys.
    #[must_use]
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "a constant that every test builds from")]
        let id = ProviderId::new("test").expect("the default id is valid");
        Self::with_id(id)
    }

    /// Like [`new`](Self::new), with another id.
    #[must_use]
    pub fn with_id(id: ProviderId) -> Self {
        let (platform, connection) = (Platform::new(id), Connection::new());
        Self { platform: Arc::new(platform), connection: Arc::new(connection) }
    }

    /// Sets what the platform can do, for all connections. With
    /// [`idempotent_send`](Capabilities::idempotent_send) a repeated key is sent once.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        self.platform.state.lock().capabilities = capabilities;
        self
    }

    /// A further connection to the same platform, for a further replica: chats and transcript are
    /// the same, sessions and faults are its own.
    #[must_use]
    pub fn another_connection(&self) -> Self {
        Self { platform: Arc::clone(&self.platform), connection: Arc::new(Connection::new()) }
    }

    /// The key of the chat with this id.
    ///
    /// # Panics
    /// When it is empty or too long for a chat id.
    #[must_use]
    #[track_caller]
    pub fn chat(&self, id: &str) -> ChatKey {
        let key: Result<ChatKey, IdError> = ChatKey::new(&self.platform.id, id);
        key.unwrap_or_else(|error| panic!("{id:?} is no chat id: {error}"))
    }

    /// Hands a message to the bot as it is, with or without an id, once a bot is connected. When
    /// this returns `Ok`, the platform knows the message as taken.
    ///
    /// # Errors
    /// [`ScriptError::NotConnected`] after a minute without a bot; [`ScriptError::Refused`].
    pub async fn deliver(&self, message: Message) -> Result<Accepted, ScriptError> {
        let session = self.session().await?;
        self.platform.state.lock().last_of_user.insert(message.chat.clone(), message.clone());
        self.platform.transcript.add(&message.chat, Happening::Said(message.clone()));
        Ok(session.inbound().deliver(message).await?)
    }

    /// The user says `text`. Returns the message with the id that it got.
    ///
    /// # Errors
    /// As for [`deliver`](Self::deliver).
    pub async fn says(
        &self,
        chat: &ChatKey,
        text: impl Into<String>,
    ) -> Result<Message, ScriptError> {
        self.sends(chat, Content::Text(text.into())).await
    }

    /// The user sends something of any kind. Returns the message with the id that it got.
    ///
    /// # Errors
    /// As for [`deliver`](Self::deliver).
    pub async fn sends(&self, chat: &ChatKey, content: Content) -> Result<Message, ScriptError> {
        let message = Message::new(chat.clone(), content).with_id(self.platform.next_id());
        self.deliver(message.clone()).await?;
        Ok(message)
    }

    /// The user presses the newest button that says `label` and is still shown.
    ///
    /// # Errors
    /// [`ScriptError::NoButton`]; as for [`deliver`](Self::deliver).
    pub async fn presses(&self, chat: &ChatKey, label: &str) -> Result<Message, ScriptError> {
        let (message, button) =
            self.platform.transcript.button(chat, label).map_err(|offered| {
                ScriptError::NoButton { chat: chat.clone(), label: label.to_owned(), offered }
            })?;
        let mut press = ButtonPress::new(button.payload).with_label(button.label);
        press.message = Some(message);
        self.sends(chat, Content::Button(press)).await
    }

    /// The platform delivers the user's last message once more, as platforms do when an
    /// acknowledgement got lost.
    ///
    /// # Errors
    /// [`ScriptError::NothingSaid`]; as for [`deliver`](Self::deliver).
    pub async fn repeats(&self, chat: &ChatKey) -> Result<Accepted, ScriptError> {
        let last = self.platform.state.lock().last_of_user.get(chat).cloned();
        let last = last.ok_or_else(|| ScriptError::NothingSaid { chat: chat.clone() })?;
        self.deliver(last).await
    }

    /// Hears what the bot does in the chat from now on.
    #[must_use]
    pub fn listen(&self, chat: &ChatKey) -> Listener {
        let transcript = &self.platform.transcript;
        Listener::new(Arc::clone(transcript), chat.clone(), transcript.length())
    }

    /// All that happened in all chats, in order.
    #[must_use]
    pub fn transcript(&self) -> Vec<Entry> {
        self.platform.transcript.entries(|_| true)
    }

    /// All that happened in this chat, in order.
    #[must_use]
    pub fn transcript_of(&self, chat: &ChatKey) -> Vec<Entry> {
        self.platform.transcript.entries(|entry| entry.chat == *chat)
    }

    /// The next send over this connection fails with `error`; the platform does not get it. Called
    /// several times, the sends fail in this order.
    pub fn fail_next_send(&self, error: ProviderError) {
        self.connection.faults.lock().next_sends.push_back(Fault::Refuse(error));
    }

    /// The next send over this connection reaches the platform, but the bot is told that the
    /// platform did not answer.
    pub fn lose_next_receipt(&self) {
        self.connection.faults.lock().next_sends.push_back(Fault::LoseReceipt);
    }

    /// From now on each send over this connection takes this long.
    pub fn delay_sends(&self, delay: Duration) {
        self.connection.faults.lock().delay = delay;
    }

    /// The connection is lost, and the provider tries to get it back: sends fail as unreachable,
    /// and what users say waits.
    pub fn interrupt(&self) {
        self.connection.link.replace(Link::Down);
    }

    /// The connection is there again.
    pub fn restore(&self) {
        self.connection.link.replace(Link::Up);
    }

    /// The platform closes the connection for good: `run` fails, and so do sends.
    pub fn close(&self, reason: impl Into<String>) {
        self.connection.link.replace(Link::Closed(reason.into()));
    }

    /// Nothing will come any more: `run` ends without an error, sends are still taken.
    pub fn end(&self) {
        self.connection.link.replace(Link::Ended);
    }

    /// Whether a bot is connected over this connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        open_session(&self.connection.session.get()).is_some()
    }

    async fn session(&self) -> Result<Session, ScriptError> {
        let (mut sessions, mut link) =
            (self.connection.session.watch(), self.connection.link.watch());
        let connected = async {
            link.wait_for(|link| *link == Link::Up).await;
            let session = sessions.wait_for(|session| open_session(session).is_some()).await;
            open_session(&session).cloned()
        };
        let session = tokio::time::timeout(PATIENCE, connected).await;
        session.ok().flatten().ok_or(ScriptError::NotConnected)
    }
}

const fn open_session(last: &Option<(u64, Option<Session>)>) -> Option<&Session> {
    match last {
        Some((_, Some(session))) => Some(session),
        _ => None,
    }
}

impl fmt::Debug for TestProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProvider")
            .field("id", &self.platform.id)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
