use std::borrow::Cow;

use serde::Serialize;

use super::outgoing::{Attachment, AttachmentSource};
use super::{Location, MediaKind};
use crate::id::MessageId;
use crate::text::{Formatted, Localized, Text};

/// What a bot says: text, and what goes with it. Any text is a reply.
///
/// ```
/// use botmesh_core::{Button, Reply};
/// let reply = Reply::text("Pay now?").button(Button::new("Yes", "pay")).button(Button::new("No", "no"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// The words; the caption, when there is one attachment.
    pub text: Text,
    /// Pictures, recordings, files.
    pub attachments: Vec<Attachment>,
    /// Buttons below the text.
    pub buttons: Vec<Button>,
    /// A place.
    pub location: Option<Location>,
    /// The message that this one answers.
    pub reply_to: Option<MessageId>,
}

/// A button: what it says and what comes back when it is pressed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Button {
    /// What it says.
    pub label: Text,
    /// What the press brings back; platforms allow 64 bytes or more.
    pub payload: Cow<'static, str>,
}

impl Button {
    /// A button that says `label` and brings back `payload`.
    pub fn new(label: impl Into<Text>, payload: impl Into<Cow<'static, str>>) -> Self {
        Self { label: label.into(), payload: payload.into() }
    }

    /// A button whose press brings back a value, which
    /// [`ButtonPress::data`](crate::message::ButtonPress::data) reads.
    ///
    /// ```
    /// # use botmesh_core::Button;
    /// # use botmesh_core::message::ButtonPress;
    /// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    /// enum Basket { Add(u32), Pay }
    /// let button = Button::data("Pay", &Basket::Pay)?;
    /// let press = ButtonPress::new(button.payload);
    /// assert_eq!(press.data::<Basket>()?, Basket::Pay);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn data(label: impl Into<Text>, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::new(label, serde_json::to_string(value)?))
    }
}

impl Reply {
    /// Words only.
    pub fn text(text: impl Into<Text>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Media without words; add them with [`caption`](Self::caption).
    pub fn media(kind: MediaKind, source: AttachmentSource) -> Self {
        Self::default().attach(Attachment::new(kind, source))
    }

    /// A place.
    #[must_use]
    pub fn location(latitude: f64, longitude: f64) -> Self {
        Self { location: Some(Location { latitude, longitude, name: None }), ..Self::default() }
    }

    /// Sets the words.
    #[must_use]
    pub fn caption(mut self, text: impl Into<Text>) -> Self {
        self.text = text.into();
        self
    }

    /// Adds an attachment.
    #[must_use]
    pub fn attach(mut self, attachment: Attachment) -> Self {
        self.attachments.push(attachment);
        self
    }

    /// Adds a button.
    #[must_use]
    pub fn button(mut self, button: Button) -> Self {
        self.buttons.push(button);
        self
    }

    /// Answers a message, where the platform shows that.
    #[must_use]
    pub fn answering(mut self, message: MessageId) -> Self {
        self.reply_to = Some(message);
        self
    }
}

impl From<&'static str> for Reply {
    fn from(text: &'static str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Localized> for Reply {
    fn from(text: Localized) -> Self {
        Self::text(text)
    }
}

impl From<Text> for Reply {
    fn from(text: Text) -> Self {
        Self::text(text)
    }
}

impl From<Formatted> for Reply {
    fn from(text: Formatted) -> Self {
        Self::text(text)
    }
}
