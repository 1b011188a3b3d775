//! What travels: messages that come in, replies that users write, and what a provider is given.

mod content;
mod outgoing;
mod raw;
mod reply;

pub use content::{
    ButtonPress, ChatEvent, Contact, Content, EventKind, Location, Media, MediaKind, Reaction,
};
pub use outgoing::{Attachment, AttachmentSource, ButtonLayout, Outgoing, OutgoingButton};
pub use raw::RawPayload;
pub use reply::{Button, Reply};

use serde::{Deserialize, Serialize};

use crate::id::{ChatKey, MessageId, UserKey};
use crate::text::Language;
use crate::time::Timestamp;

/// One inbound message, event or button press.
///
/// It can be written as JSON and read back without loss, so that another replica can go on with it.
///
/// ```
/// use botmesh_core::{ChatKey, Message, ProviderId};
/// let chat = ChatKey::new(&ProviderId::new("telegram")?, "42")?;
/// let message = Message::text(chat, "/start");
/// assert_eq!(message.body(), Some("/start"));
/// # Ok::<(), botmesh_core::IdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Where it was written; in groups, who wrote it is part of the key.
    pub chat: ChatKey,
    /// The platform's id. Two messages of one chat with the same id are one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// Who wrote it, where the platform says more than the chat key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// What it says.
    pub content: Content,
    /// The language of the message, where the platform or a hook tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// When the platform took it; otherwise when the provider did.
    #[serde(default)]
    pub sent_at: Timestamp,
    /// The message that this one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// The platform's own payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawPayload>,
}

/// Who wrote a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sender {
    /// The platform's id of the person.
    pub id: String,
    /// The name that the platform shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the platform says that a bot wrote it.
    #[serde(default)]
    pub is_bot: bool,
}

impl Sender {
    /// The person with this platform id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), name: None, is_bot: false }
    }

    /// Adds the name that the platform shows.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl Message {
    /// A message with this content.
    #[must_use]
    pub const fn new(chat: ChatKey, content: Content) -> Self {
        Self {
            chat,
            id: None,
            sender: None,
            content,
            language: None,
            sent_at: Timestamp::from_millis(0),
            reply_to: None,
            raw: None,
        }
    }

    /// A text message.
    pub fn text(chat: ChatKey, body: impl Into<String>) -> Self {
        Self::new(chat, Content::Text(body.into()))
    }

    /// Sets the platform's id, by which duplicates are told.
    #[must_use]
    pub fn with_id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// Sets who wrote it.
    #[must_use]
    pub fn with_sender(mut self, sender: Sender) -> Self {
        self.sender = Some(sender);
        self
    }

    /// Sets the language it is written in.
    #[must_use]
    pub fn with_language(mut self, language: Language) -> Self {
        self.language = Some(language);
        self
    }

    /// Sets when the platform took it.
    #[must_use]
    pub const fn with_sent_at(mut self, sent_at: Timestamp) -> Self {
        self.sent_at = sent_at;
        self
    }

    /// Sets the message that this one answers.
    #[must_use]
    pub fn with_reply_to(mut self, message: MessageId) -> Self {
        self.reply_to = Some(message);
        self
    }

    /// Keeps the platform's own payload.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<RawPayload>) -> Self {
        self.raw = Some(raw.into());
        self
    }

    /// The words of the message: its text, a caption, or the label of a pressed button.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        self.content.body()
    }

    /// The key of the person who wrote it.
    #[must_use]
    pub fn user(&self) -> UserKey {
        self.sender
            .as_ref()
            .and_then(|sender| UserKey::new(self.chat.provider(), &sender.id).ok())
            .unwrap_or_else(|| self.chat.default_user())
    }
}
