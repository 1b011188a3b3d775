//! What a flow or a conversation asks, and how the next message is read as an answer.

mod answer;
mod reading;

pub use answer::{Answer, Invalid};
pub use reading::{Reading, WaitToken};

use std::borrow::Cow;
use std::time::Duration;

use crate::message::{Button, Reply};
use crate::text::{Formatted, Localized, Text, t};

/// A question: its words, the offered answers, what a wrong answer is told, how long it waits.
///
/// ```
/// use std::time::Duration;
/// use botmesh_core::question;
/// let size = question("Which size?")
///     .buttons(["S", "M", "L"])
///     .retry(3, "Please press one of the buttons.")
///     .timeout(Duration::from_secs(600));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    prompt: Reply,
    options: Vec<AnswerOption>,
    only_options: bool,
    attempts: Option<u32>,
    retry_text: Option<Text>,
    timeout: Option<Duration>,
}

/// One offered answer: what its button says and what it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerOption {
    label: Text,
    value: Cow<'static, str>,
}

impl AnswerOption {
    /// An option that says `label` and answers `value`.
    pub fn new(label: impl Into<Text>, value: impl Into<Cow<'static, str>>) -> Self {
        Self { label: label.into(), value: value.into() }
    }

    /// What the button says.
    #[must_use]
    pub const fn label(&self) -> &Text {
        &self.label
    }

    /// What pressing it answers.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// A question with this prompt; any text or [`Reply`] is one.
pub fn question(prompt: impl Into<Reply>) -> Question {
    Question {
        prompt: prompt.into(),
        options: Vec::new(),
        only_options: false,
        attempts: None,
        retry_text: None,
        timeout: None,
    }
}

impl Question {
    /// Offers these answers as buttons. Other answers are still taken; see
    /// [`only_buttons`](Self::only_buttons).
    #[must_use]
    pub fn buttons<T: Into<Cow<'static, str>>>(
        mut self,
        labels: impl IntoIterator<Item = T>,
    ) -> Self {
        self.options.extend(labels.into_iter().map(|label| {
            let label = label.into();
            AnswerOption { label: label.clone().into(), value: label }
        }));
        self
    }

    /// Offers one answer as a button that says `label` and answers `value`.
    #[must_use]
    pub fn option(mut self, label: impl Into<Text>, value: impl Into<Cow<'static, str>>) -> Self {
        self.options.push(AnswerOption::new(label, value));
        self
    }

    /// Takes only offered answers: pressed, or typed as their number or label.
    #[must_use]
    pub const fn only_buttons(mut self) -> Self {
        self.only_options = true;
        self
    }

    /// Asks at most `attempts` times, and tells a wrong answer `text`. Without it a question
    /// is asked until it is answered and says the built-in `core.answer.invalid`.
    #[must_use]
    pub fn retry(mut self, attempts: u32, text: impl Into<Text>) -> Self {
        self.attempts = Some(attempts);
        self.retry_text = Some(text.into());
        self
    }

    /// Waits at most this long for an answer.
    #[must_use]
    pub const fn timeout(mut self, after: Duration) -> Self {
        self.timeout = Some(after);
        self
    }

    /// The words of the question.
    #[must_use]
    pub const fn prompt(&self) -> &Reply {
        &self.prompt
    }

    /// The offered answers.
    #[must_use]
    pub fn options(&self) -> &[AnswerOption] {
        &self.options
    }

    /// Whether only offered answers are taken.
    #[must_use]
    pub const fn takes_only_options(&self) -> bool {
        self.only_options
    }

    /// How often it is asked at most; none for no limit.
    #[must_use]
    pub const fn attempts(&self) -> Option<u32> {
        self.attempts
    }

    /// What a wrong answer is told; none for the built-in text.
    #[must_use]
    pub const fn retry_text(&self) -> Option<&Text> {
        self.retry_text.as_ref()
    }

    /// What an answer is told that does not do: its own reason, else the retry text.
    pub(crate) fn why_invalid(&self, invalid: &Invalid) -> Text {
        let why = invalid.text().or_else(|| self.retry_text()).cloned();
        why.unwrap_or_else(|| t("core.answer.invalid").into())
    }

    /// What an answer is told that is none of the offered ones.
    pub(crate) fn why_not_offered(&self) -> Text {
        self.retry_text().cloned().unwrap_or_else(|| t("core.answer.not-offered").into())
    }

    /// How long it waits; none for as long as the conversation may.
    #[must_use]
    pub const fn waits(&self) -> Option<Duration> {
        self.timeout
    }

    /// The message that asks: the prompt, with a button for each option that only this wait
    /// (`token`) understands.
    #[must_use]
    pub fn to_reply(&self, token: &WaitToken) -> Reply {
        let mut reply = self.prompt.clone();
        reply.buttons.extend(
            self.options
                .iter()
                .enumerate()
                .map(|(index, option)| Button::new(option.label.clone(), token.payload(index))),
        );
        reply
    }
}

impl From<&'static str> for Question {
    fn from(prompt: &'static str) -> Self {
        question(prompt)
    }
}

impl From<String> for Question {
    fn from(prompt: String) -> Self {
        question(prompt)
    }
}

impl From<Localized> for Question {
    fn from(prompt: Localized) -> Self {
        question(prompt)
    }
}

impl From<Formatted> for Question {
    fn from(prompt: Formatted) -> Self {
        question(prompt)
    }
}

impl From<Text> for Question {
    fn from(prompt: Text) -> Self {
        question(prompt)
    }
}

impl From<Reply> for Question {
    fn from(prompt: Reply) -> Self {
        question(prompt)
    }
}
