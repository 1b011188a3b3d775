use std::fmt;

/// What a platform can do. A declared capability is tested by the conformance suite; one that is
/// not declared is answered with an error or the fallback named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// Only one process may be connected at a time.
    pub exclusive_session: bool,
    /// Shows buttons. Without it buttons become numbered lines of text, and a typed number or
    /// label is taken for a press by the question that showed them.
    pub buttons: bool,
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
