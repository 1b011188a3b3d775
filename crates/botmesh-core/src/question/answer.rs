use std::fmt;
use std::str::FromStr;

use crate::message::{Content, Location, Media, Message};
use crate::text::{Text, t};

/// A message that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    message: Message,
    choice: Option<(usize, String)>,
}

impl Answer {
    /// The message as a free answer.
    #[must_use]
    pub const fn free(message: Message) -> Self {
        Self { message, choice: None }
    }

    /// The message as the choice of the option `index`, which stands for `value`.
    pub fn chosen(message: Message, index: usize, value: impl Into<String>) -> Self {
        Self { message, choice: Some((index, value.into())) }
    }

    /// The message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }

    /// Takes the message out.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }

    /// The number of the chosen option, from 0; none for a free answer.
    #[must_use]
    pub fn choice(&self) -> Option<usize> {
        self.choice.as_ref().map(|(index, _)| *index)
    }

    /// What the user said, without white space around it: the value of the chosen option, or the
    /// words of the message.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.choice {
            Some((_, value)) => Some(value),
            None => self.message.body().map(str::trim).filter(|text| !text.is_empty()),
        }
    }

    /// What the user said, as text.
    ///
    /// # Errors
    /// [`Invalid`] when the message has no words, as a picture or a location has none.
    pub fn text(&self) -> Result<String, Invalid> {
        self.as_text()
            .map(str::to_owned)
            .ok_or_else(|| Invalid::because(t("core.answer.text-needed")))
    }

    /// What the user said, read as a `T`, such as a number.
    ///
    /// # Errors
    /// [`Invalid`] when it cannot be read as a `T`; the question's own retry text is told.
    pub fn parse<T: FromStr>(&self) -> Result<T, Invalid> {
        self.as_text().and_then(|text| text.parse().ok()).ok_or_else(Invalid::unexplained)
    }

    /// The picture, recording or file; of several, the first.
    ///
    /// # Errors
    /// [`Invalid`] when the message is none.
    pub fn media(&self) -> Result<&Media, Invalid> {
        match &self.message.content {
            Content::Media(media) => Ok(media),
            Content::Album(media) => media.first().ok_or_else(Invalid::unexplained),
            _ => Err(Invalid::unexplained()),
        }
    }

    /// The place.
    ///
    /// # Errors
    /// [`Invalid`] when the message is none.
    pub fn location(&self) -> Result<&Location, Invalid> {
        match &self.message.content {
            Content::Location(location) => Ok(location),
            _ => Err(Invalid::unexplained()),
        }
    }
}

/// The answer does not do; the user is told why and asked again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invalid {
    text: Option<Text>,
}

impl Invalid {
    /// The user is told the question's retry text.
    #[must_use]
    pub const fn unexplained() -> Self {
        Self { text: None }
    }

    /// The user is told `text`.
    pub fn because(text: impl Into<Text>) -> Self {
        Self { text: Some(text.into()) }
    }

    /// What the user is told; none for the question's retry text.
    #[must_use]
    pub const fn text(&self) -> Option<&Text> {
        self.text.as_ref()
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            None => f.write_str("the answer does not fit the question"),
            Some(text) => write!(f, "the answer does not fit the question: {}", text.outline()),
        }
    }
}

impl std::error::Error for Invalid {}
