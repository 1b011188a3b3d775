use std::fmt;

use crate::message::OutgoingButton;

/// What a platform can do. A declared capability is tested by the conformance suite; one that is
/// not declared is answered with an error or the fallback named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// Only one process may be connected at a time.
    pub exclusive_session: bool,
    /// Shows bold words, links and what else stands out in a text. Without it the words stay, as
    /// [`Outgoing::drop_formatting`](crate::message::Outgoing::drop_formatting) says. Where a platform
    /// has a part of it, its provider does the same for the rest.
    pub formatting: bool,
    /// Shows buttons, within these limits. More or longer ones, and buttons where there are none,
    /// become the rows of a list; where that is not possible either, they become numbered lines of
    /// text, and a typed number or label is taken for a press by the question that showed them.
    pub buttons: Option<ChoiceLimits>,
    /// Shows a list to choose from, within these limits. A message has one where its
    /// [`layout`](crate::message::Outgoing::layout) says so.
    pub list: Option<ChoiceLimits>,
    /// Sends pictures, recordings and files. Without it the send is refused.
    pub media: bool,
    /// Opens what users sent, as [`Context::download`](crate::Context::download) does. Without it
    /// the download is refused.
    pub download: bool,
    /// Sends places. Without it a place becomes a line of text with a map address.
    pub location: bool,
    /// Edits sent messages. Without it the edit is refused.
    pub edit: bool,
    /// Deletes sent messages. Without it the deletion is refused.
    pub delete: bool,
    /// Reacts to messages. Without it the reaction is refused.
    pub react: bool,
    /// Shows that the bot is writing. Without it nothing is shown.
    pub typing: bool,
    /// Honours [`SendOptions::idempotency_key`](super::SendOptions::idempotency_key).
    pub idempotent_send: bool,
}

/// How many buttons a message can have, or rows its list, and how long they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceLimits {
    /// How many there are at most.
    pub most: usize,
    /// How many characters the label of each has at most.
    pub label: usize,
}

impl ChoiceLimits {
    /// As many as are wanted, as long as they are.
    pub const NONE: Self = Self::new(usize::MAX, usize::MAX);

    /// So many at most, with labels of so many characters at most.
    #[must_use]
    pub const fn new(most: usize, label: usize) -> Self {
        Self { most, label }
    }

    /// Whether the platform can show these.
    #[must_use]
    pub fn fit(&self, buttons: &[OutgoingButton]) -> bool {
        let short = |button: &OutgoingButton| button.label.chars().count() <= self.label;
        buttons.len() <= self.most && buttons.iter().all(short)
    }
}

/// One of the things that platforms differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Sending pictures, recordings and files.
    Media,
    /// Downloading what users sent.
    Download,
    /// Editing sent messages.
    Edit,
    /// Deleting sent messages.
    Delete,
    /// Reacting to messages.
    React,
    /// Showing that the bot is writing.
    Typing,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Media => "send media",
            Self::Download => "download media",
            Self::Edit => "edit messages",
            Self::Delete => "delete messages",
            Self::React => "react to messages",
            Self::Typing => "show that it is writing",
        })
    }
}
