//! Text with formatting, built by functions that mean the same on every platform.

use std::borrow::Cow;
use std::ops::{Add, AddAssign};

use super::{Localized, Text};

/// Text of which some stands out, made by [`bold`] and its like and put together with `+`.
///
/// There are no marks to escape: what a user wrote is shown as it is, wherever it is put in. A
/// platform that lacks some of it shows the words, and the address of a link behind them.
///
/// ```
/// use botmesh_core::text::{bold, code, link};
/// use botmesh_core::Reply;
/// let name = "<Ana>".to_owned();
/// let words = bold("Welcome, ") + bold(name) + "! Read " + link("this", "https://b.example")
///     + " or write " + code("/help") + ".";
/// let reply = Reply::from(words);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Formatted(pub(super) Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Never formatted.
    Words(Text),
    Styled(Style, Vec<Piece>),
}

/// How a part of a text stands out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Style {
    /// Heavy.
    Bold,
    /// Slanted.
    Italic,
    /// With a line below.
    Underlined,
    /// With a line through it.
    Struck,
    /// Hidden until the reader wants to see it.
    Spoiler,
    /// Letters of equal width, within a line.
    Code,
    /// Lines of letters of equal width.
    Preformatted {
        /// The programming language, such as `rust`.
        language: Option<Cow<'static, str>>,
    },
    /// Somebody else's words.
    Quote,
    /// Leads to an address.
    Link {
        /// The address.
        address: Cow<'static, str>,
    },
    /// Names a user, who is notified where the platform does that.
    Mention {
        /// The platform's id of the user.
        user: Cow<'static, str>,
    },
}

/// A part of a text that stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The first byte, at the boundary of a character.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
    /// How it stands out.
    pub style: Style,
}

impl Span {
    /// The bytes from `start` to before `end`.
    #[must_use]
    pub const fn new(start: usize, end: usize, style: Style) -> Self {
        Self { start, end, style }
    }
}

/// Heavy words.
pub fn bold(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Bold, words)
}

/// Slanted words.
pub fn italic(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Italic, words)
}

/// Words with a line below.
pub fn underlined(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Underlined, words)
}

/// Words with a line through them.
pub fn struck(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Struck, words)
}

/// Words that are hidden until the reader wants to see them.
pub fn spoiler(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Spoiler, words)
}

/// Letters of equal width, within a line.
pub fn code(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Code, words)
}

/// Lines of letters of equal width, as of a table or a program.
pub fn preformatted(lines: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Preformatted { language: None }, lines)
}

/// Lines of a program in this programming language.
pub fn program(language: impl Into<Cow<'static, str>>, lines: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Preformatted { language: Some(language.into()) }, lines)
}

/// Somebody else's words.
pub fn quote(words: impl Into<Text>) -> Formatted {
    Formatted::styled(Style::Quote, words)
}

/// Words that lead to an address.
pub fn link(words: impl Into<Text>, address: impl Into<Cow<'static, str>>) -> Formatted {
    Formatted::styled(Style::Link { address: address.into() }, words)
}

/// Words that name a user, by the platform's id, such as
/// [`Sender::id`](crate::message::Sender::id).
pub fn mention(words: impl Into<Text>, user: impl Into<Cow<'static, str>>) -> Formatted {
    Formatted::styled(Style::Mention { user: user.into() }, words)
}

impl Formatted {
    /// No words yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Words that stand out in this way, beside how they do already.
    pub fn styled(style: Style, words: impl Into<Text>) -> Self {
        Self(vec![Piece::Styled(style, pieces(words.into()))])
    }

    /// Whether any of it depends on the language of the chat.
    pub(crate) fn is_localized(&self) -> bool {
        fn localized(pieces: &[Piece]) -> bool {
            pieces.iter().any(|piece| match piece {
                Piece::Words(text) => text.is_localized(),
                Piece::Styled(_, inner) => localized(inner),
            })
        }
        localized(&self.0)
    }

    /// The words and what stands out in them; `show` gives the words of a text.
    pub(crate) fn spans(
        &self,
        show: &mut dyn FnMut(&Text) -> Cow<'static, str>,
    ) -> (String, Vec<Span>) {
        let (mut words, mut spans) = (String::new(), Vec::new());
        write(&self.0, show, &mut words, &mut spans);
        (words, spans)
    }
}

fn write(
    pieces: &[Piece],
    show: &mut dyn FnMut(&Text) -> Cow<'static, str>,
    words: &mut String,
    spans: &mut Vec<Span>,
) {
    for piece in pieces {
        match piece {
            Piece::Words(text) => words.push_str(&show(text)),
            Piece::Styled(style, inner) => {
                let (place, start) = (spans.len(), words.len());
                write(inner, show, words, spans);
                if words.len() > start {
                    // What is around comes before what is inside.
                    spans.insert(place, Span::new(start, words.len(), style.clone()));
                }
            }
        }
    }
}

fn pieces(text: Text) -> Vec<Piece> {
    match text {
        Text::Formatted(formatted) => formatted.0,
        words => vec![Piece::Words(words)],
    }
}

impl<T: Into<Text>> Add<T> for Formatted {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self += more;
        self
    }
}

impl<T: Into<Text>> AddAssign<T> for Formatted {
    fn add_assign(&mut self, more: T) {
        self.0.extend(pieces(more.into()));
    }
}

impl Add<Formatted> for &'static str {
    type Output = Formatted;

    fn add(self, more: Formatted) -> Formatted {
        Formatted::from(self) + more
    }
}

impl Add<Formatted> for Localized {
    type Output = Formatted;

    fn add(self, more: Formatted) -> Formatted {
        Formatted::from(Text::from(self)) + more
    }
}

impl From<Formatted> for Text {
    fn from(formatted: Formatted) -> Self {
        Self::Formatted(Box::new(formatted))
    }
}

impl From<Text> for Formatted {
    fn from(text: Text) -> Self {
        Self(pieces(text))
    }
}

impl From<&'static str> for Formatted {
    fn from(words: &'static str) -> Self {
        Text::from(words).into()
    }
}

impl From<String> for Formatted {
    fn from(words: String) -> Self {
        Text::from(words).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Language, Texts, t};

    fn shown(formatted: &Formatted) -> (String, Vec<Span>) {
        let texts = Texts::builtin();
        let mut show = |text: &Text| texts.resolve(text.clone(), &Language::english());
        formatted.spans(&mut show)
    }

    /// A8: text with formatting is put together as it is written, also out of texts that depend on
    /// the language.
    #[test]
    fn pieces_of_any_kind_are_put_together() {
        let name = String::from("Ñandú*");
        let text = "Hi " + bold(name) + ": " + italic(bold("a") + "b") + t("core.choice.yes");
        assert!(text.is_localized());
        let (words, spans) = shown(&text);
        assert_eq!(words, "Hi Ñandú*: abYes");
        let named = |span: &Span| (&words[span.start..span.end], span.style.clone());
        let named: Vec<_> = spans.iter().map(named).collect();
        assert_eq!(named, [("Ñandú*", Style::Bold), ("ab", Style::Italic), ("a", Style::Bold)]);
    }

    /// A8: nothing stands out of nothing.
    #[test]
    fn empty_words_have_no_span() {
        let (words, spans) = shown(&(bold("") + link("", "https://b.example") + "x"));
        assert_eq!((words.as_str(), spans.len()), ("x", 0));
        assert_eq!(shown(&Formatted::new()).0, "");
    }
}
