use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::id::MessageId;

/// What an inbound message says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Content {
    /// Words.
    Text(String),
    /// A picture, a recording, a file.
    Media(Media),
    /// Several pictures, recordings or files that were sent as one message, in order.
    Album(Vec<Media>),
    /// A button that the bot had shown was pressed.
    Button(ButtonPress),
    /// A place.
    Location(Location),
    /// Somebody's contact data.
    Contact(Contact),
    /// A reaction to a message.
    Reaction(Reaction),
    /// Something that happened in the chat rather than being said.
    Event(ChatEvent),
    /// A kind that botmesh does not know; the raw payload has the rest.
    Unsupported {
        /// The platform's word for it.
        kind: String,
    },
}

impl Content {
    /// The words: a text, a caption, or the label of a pressed button.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Media(media) => media.caption.as_deref(),
            Self::Album(media) => media.iter().find_map(|media| media.caption.as_deref()),
            Self::Button(press) => press.label.as_deref(),
            _ => None,
        }
    }
}

/// A picture, a recording or a file that was sent to the bot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// The platform's handle, with which the provider downloads it.
    pub reference: String,
    /// The words sent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Its file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its media type, such as `image/jpeg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Media {
    /// Media of this kind with the platform's handle.
    pub fn new(kind: MediaKind, reference: impl Into<String>) -> Self {
        Self {
            kind,
            reference: reference.into(),
            caption: None,
            name: None,
            mime: None,
            size: None,
        }
    }

    /// Adds the words sent with it.
    #[must_use]
    pub fn with_caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }
}

/// The kinds of media that platforms tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A film.
    Video,
    /// Music or another recording.
    Audio,
    /// A voice note.
    Voice,
    /// Any file.
    Document,
    /// A sticker.
    Sticker,
}

/// A press of a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ButtonPress {
    /// The payload that the button was sent with.
    pub payload: String,
    /// What the button said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The message that showed the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

impl ButtonPress {
    /// A press of the button with this payload.
    pub fn new(payload: impl Into<String>) -> Self {
        Self { payload: payload.into(), label: None, message: None }
    }

    /// The payload as the value that [`Button::data`](crate::Button::data) put into it.
    ///
    /// # Errors
    /// When the payload is no `T`, as that of another button.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.payload)
    }

    /// Adds what the button said.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// A place, in degrees of WGS 84.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Location {
    /// Degrees north of the equator.
    pub latitude: f64,
    /// Degrees east of Greenwich.
    pub longitude: f64,
    /// What the place is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Somebody's contact data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The name.
    pub name: String,
    /// The telephone number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
}

/// A reaction to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reaction {
    /// The message reacted to.
    pub message: MessageId,
    /// The emoji; none when the reaction was taken back.
    pub emoji: Option<String>,
}

/// Something that happened in the chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatEvent {
    /// What happened.
    pub kind: EventKind,
    /// Details in the platform's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The message that it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

impl ChatEvent {
    /// This happened.
    #[must_use]
    pub const fn new(kind: EventKind) -> Self {
        Self { kind, detail: None, message: None }
    }

    /// Adds details in the platform's own words.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the message that it happened to.
    #[must_use]
    pub fn with_message(mut self, message: MessageId) -> Self {
        self.message = Some(message);
        self
    }
}

/// The happenings that handlers can be registered for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// The user opened the chat with the bot, or the bot was added to a group.
    Started,
    /// The user left or blocked the bot, or the bot was removed from a group.
    Stopped,
    /// Somebody joined the group.
    Joined,
    /// Somebody left the group.
    Left,
    /// A message was edited.
    Edited,
    /// A message was deleted.
    Deleted,
    /// The state of a message of ours changed, such as delivered or read.
    Status,
    /// Any other, in the platform's word.
    Other(String),
}
