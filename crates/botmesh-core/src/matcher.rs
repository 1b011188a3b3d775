//! Which messages a handler or a flow is for.

mod matched;
mod problem;
pub(crate) mod words;

#[cfg(test)]
mod tests;

pub use matched::Matched;
pub use problem::MatcherProblem;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use regex::Regex;

use crate::id::ProviderId;
use crate::message::{Content, EventKind, Message};
use crate::question::WaitToken;

type Predicate = Arc<dyn Fn(&Message) -> bool + Send + Sync>;

/// Tells whether a message is meant: by its words, as a [`command`], by a [`pattern`], by a
/// [`predicate`], as an [`event`] or as a press of a [`button`].
///
/// Any text is a matcher for exactly that text, without regard to white space around it and to
/// upper and lower case. Words are the text of a message, a caption, or what a pressed button
/// says; buttons of questions are for their question alone.
///
/// ```
/// use botmesh_core::{Matcher, command};
/// let greeting = Matcher::from("hi");
/// let start = command("start").only_on("telegram");
/// # assert!(greeting.problems().is_empty() && start.problems().is_empty());
/// ```
#[derive(Clone)]
pub struct Matcher {
    rule: Rule,
    provider: Option<Cow<'static, str>>,
}

#[derive(Clone)]
enum Rule {
    /// In lower case, without white space around it.
    Text(Box<str>),
    /// In lower case, without the slash.
    Command(Box<str>),
    Pattern(Regex),
    BadPattern(Box<MatcherProblem>),
    Predicate(Predicate),
    Event(EventKind),
    Button(Cow<'static, str>),
}

/// Matches `/name`, `/name words` and, as groups write it, `/name@bot words`, without regard to
/// upper and lower case. What follows is in [`Matched::arguments`].
///
/// Which bot is addressed is not compared: a provider drops what is for another one.
#[must_use]
pub fn command(name: &str) -> Matcher {
    Matcher::by(Rule::Command(words::folded(name.strip_prefix('/').unwrap_or(name))))
}

/// Matches words in which the regular expression is found; begin it with `^` and end it with `$`
/// to match all of them. What its groups found is in [`Matched::group`] and [`Matched::named`].
///
/// A bad expression matches nothing and is reported when the bot is built.
#[must_use]
pub fn pattern(expression: &str) -> Matcher {
    Matcher::by(match Regex::new(expression) {
        Ok(regex) => Rule::Pattern(regex),
        Err(source) => Rule::BadPattern(Box::new(MatcherProblem::Pattern {
            expression: expression.to_owned(),
            source,
        })),
    })
}

/// Matches the messages for which `test` is true.
pub fn predicate(test: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Matcher {
    Matcher::by(Rule::Predicate(Arc::new(test)))
}

/// Matches something that happened in the chat rather than being said.
#[must_use]
pub const fn event(kind: EventKind) -> Matcher {
    Matcher::by(Rule::Event(kind))
}

/// Matches a press of the button that was sent with this payload.
pub fn button(payload: impl Into<Cow<'static, str>>) -> Matcher {
    Matcher::by(Rule::Button(payload.into()))
}

impl Matcher {
    const fn by(rule: Rule) -> Self {
        Self { rule, provider: None }
    }

    /// Matches only what comes from the provider with this id.
    #[must_use]
    pub fn only_on(mut self, provider: impl Into<Cow<'static, str>>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Whether `message` is meant, and what was read from it. Nothing is allocated for a message
    /// that is not, nor for one that carries no arguments or groups.
    #[must_use]
    pub fn matches(&self, message: &Message) -> Option<Matched> {
        if self.provider.as_ref().is_some_and(|only| message.chat.provider() != only) {
            return None;
        }
        match &self.rule {
            Rule::Text(text) => words::same(spoken(message)?, text).then_some(Matched::NOTHING),
            Rule::Command(name) => {
                words::command_arguments(spoken(message)?, name).map(Matched::with_arguments)
            }
            Rule::Pattern(regex) => Matched::by_pattern(regex, spoken(message)?),
            Rule::BadPattern(_) => None,
            Rule::Predicate(test) => test(message).then_some(Matched::NOTHING),
            Rule::Event(kind) => match &message.content {
                Content::Event(event) => (event.kind == *kind).then_some(Matched::NOTHING),
                _ => None,
            },
            Rule::Button(payload) => match &message.content {
                Content::Button(press) => (press.payload == *payload).then_some(Matched::NOTHING),
                _ => None,
            },
        }
    }

    /// What is wrong with it; reported when the bot is built.
    #[must_use]
    pub fn problems(&self) -> Vec<MatcherProblem> {
        let mut problems = Vec::new();
        match &self.rule {
            Rule::BadPattern(problem) => problems.push((**problem).clone()),
            Rule::Text(text) if text.is_empty() => problems.push(MatcherProblem::EmptyText),
            Rule::Command(name) if !words::is_command_name(name) => {
                problems.push(MatcherProblem::Command { name: name.to_string() });
            }
            _ => {}
        }
        if let Some(provider) = &self.provider
            && let Err(source) = ProviderId::new(&**provider)
        {
            problems.push(MatcherProblem::Provider { source });
        }
        problems
    }

    /// Whether it matches a command.
    #[must_use]
    pub const fn is_command(&self) -> bool {
        matches!(self.rule, Rule::Command(_))
    }

    /// The id of the only provider it matches on; none for all.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }
}

/// The words of a message that a route may match.
fn spoken(message: &Message) -> Option<&str> {
    match &message.content {
        Content::Button(press) if WaitToken::is_question_button(&press.payload) => None,
        content => content.body(),
    }
}

impl From<&'static str> for Matcher {
    fn from(text: &'static str) -> Self {
        Self::by(Rule::Text(words::folded(text)))
    }
}

impl From<String> for Matcher {
    fn from(text: String) -> Self {
        Self::by(Rule::Text(words::folded(&text)))
    }
}

/// Says what it matches, in words that fit a log line.
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Text(text) => write!(f, "text {text:?}")?,
            Rule::Command(name) => write!(f, "command /{name}")?,
            Rule::Pattern(regex) => write!(f, "pattern {:?}", regex.as_str())?,
            Rule::BadPattern(_) => f.write_str("bad pattern")?,
            Rule::Predicate(_) => f.write_str("predicate")?,
            Rule::Event(kind) => write!(f, "event {kind:?}")?,
            Rule::Button(payload) => write!(f, "button {payload:?}")?,
        }
        match &self.provider {
            Some(provider) => write!(f, " on {provider}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matcher({self})")
    }
}
