//! Texts in the user's language: plain ones, and keys that are looked up per language.

mod catalog;
mod error;
mod formatted;
mod language;

pub use catalog::Texts;
pub use error::TextsError;
pub use formatted::{
    Formatted, Span, Style, bold, code, italic, link, mention, preformatted, program, quote,
    spoiler, struck, underlined,
};
pub use language::{Language, LanguageError};

use std::borrow::Cow;

/// A text to be shown: as it stands, a key with arguments that is looked up in the language of the
/// chat, or pieces of both of which some stand out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Text {
    /// Shown as it stands.
    Plain(Cow<'static, str>),
    /// Looked up when it is sent; see [`t`].
    Localized(Box<Localized>),
    /// Put together, with formatting; see [`bold`].
    Formatted(Box<Formatted>),
}

/// A key and its arguments, made by [`t`].
#[derive(Debug, Clone, PartialEq)]
pub struct Localized {
    key: Cow<'static, str>,
    arguments: Vec<(Cow<'static, str>, Argument)>,
}

/// The value of an argument of a localized text. Numbers can select plural forms.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Argument {
    /// Text, put in as it is.
    Text(Cow<'static, str>),
    /// A number, written in digits with a decimal point.
    Number(f64),
}

/// The text with this key, in the language of the chat it is sent to.
///
/// ```
/// use botmesh_core::{Text, t};
/// let text: Text = t("shop.welcome").with("name", "Ana").with("items", 3).into();
/// ```
pub fn t(key: impl Into<Cow<'static, str>>) -> Localized {
    Localized { key: key.into(), arguments: Vec::new() }
}

impl Localized {
    /// Gives the argument `name` a value.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Argument>) -> Self {
        self.arguments.push((name.into(), value.into()));
        self
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The arguments in the order in which they were given.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, &Argument)> {
        self.arguments.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

impl Text {
    /// Whether any of it depends on the language of the chat.
    pub(crate) fn is_localized(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Localized(_) => true,
            Self::Formatted(formatted) => formatted.is_localized(),
        }
    }

    /// The words where there is no language: a key stands for itself.
    pub(crate) fn outline(&self) -> Cow<'static, str> {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Localized(text) => Cow::Owned(text.key().to_owned()),
            Self::Formatted(formatted) => formatted.spans(&mut |text| text.outline()).0.into(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Plain(Cow::Borrowed(""))
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Plain(Cow::Owned(text))
    }
}

impl From<Cow<'static, str>> for Text {
    fn from(text: Cow<'static, str>) -> Self {
        Self::Plain(text)
    }
}

impl From<Localized> for Text {
    fn from(localized: Localized) -> Self {
        Self::Localized(Box::new(localized))
    }
}

impl From<&'static str> for Argument {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Argument {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

macro_rules! number_argument {
    ($($number:ty),*) => {$(
        impl From<$number> for Argument {
            fn from(number: $number) -> Self {
                Self::Number(f64::from(number))
            }
        }
    )*};
}
number_argument!(i8, i16, i32, u8, u16, u32, f32, f64);
