use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Location, MediaKind};
use crate::id::MessageId;
use crate::text::Span;

/// A reply with all its texts in the language of the chat: what a provider sends.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Outgoing {
    /// The words; the caption, when there is one attachment. May be empty.
    pub text: Cow<'static, str>,
    /// What stands out in the text; where two lie within each other, the outer comes first.
    pub spans: Vec<Span>,
    /// Pictures, recordings, files.
    pub attachments: Vec<Attachment>,
    /// Buttons below the text, in order.
    pub buttons: Vec<OutgoingButton>,
    /// How the buttons are shown.
    pub layout: ButtonLayout,
    /// A place.
    pub location: Option<Location>,
    /// The message that this one answers.
    pub reply_to: Option<MessageId>,
}

impl Outgoing {
    /// Words only.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// How the buttons of a message are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ButtonLayout {
    /// Below the message.
    #[default]
    Inline,
    /// As a list that opens from the message. A choice comes back as the press of a button does.
    List,
}

/// A button, with its label in the language of the chat.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingButton {
    /// What it says.
    pub label: Cow<'static, str>,
    /// What the press brings back.
    pub payload: Cow<'static, str>,
}

impl OutgoingButton {
    /// A button that says `label` and brings back `payload`.
    pub fn new(label: impl Into<Cow<'static, str>>, payload: impl Into<Cow<'static, str>>) -> Self {
        Self { label: label.into(), payload: payload.into() }
    }
}

/// A picture, a recording or a file to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attachment {
    /// How the platform shall show it.
    pub kind: MediaKind,
    /// Where its bytes are.
    pub source: AttachmentSource,
    /// The file name shown to the user.
    pub name: Option<String>,
    /// Its media type, such as `image/png`; else the provider goes by the name.
    pub mime: Option<String>,
}

impl Attachment {
    /// An attachment of this kind.
    #[must_use]
    pub const fn new(kind: MediaKind, source: AttachmentSource) -> Self {
        Self { kind, source, name: None, mime: None }
    }

    /// Sets the file name shown to the user.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

/// Where the bytes of an attachment are.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachmentSource {
    /// An address that the platform or the provider fetches.
    Url(String),
    /// A file on this machine, read when it is sent.
    Path(PathBuf),
    /// In memory.
    Bytes(Arc<[u8]>),
    /// A handle of the platform for something that it already has.
    Reference(String),
}

impl fmt::Debug for AttachmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The address may carry a signed query: only what stands before it is shown.
            Self::Url(url) => write!(f, "Url({:?})", url.split('?').next().unwrap_or_default()),
            Self::Path(path) => write!(f, "Path({})", path.display()),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reference(reference) => write!(f, "Reference({reference:?})"),
        }
    }
}
