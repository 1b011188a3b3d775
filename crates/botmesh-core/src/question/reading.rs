use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Answer, Question};
use crate::message::{Content, Message};
use crate::text::Text;

/// Marks the buttons of one wait, so that a press of an older button is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitToken {
    run: u64,
    wait: u32,
}

/// How a message reads as the answer to a question.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum Reading {
    /// It answers.
    Answer(Answer),
    /// A button of an earlier question, or one that was pressed before.
    Expired,
    /// None of the offered answers, where only those are taken.
    NotOffered(Message),
}

impl WaitToken {
    /// The token of the `wait`-th wait of the conversation `run`.
    #[must_use]
    pub const fn new(run: u64, wait: u32) -> Self {
        Self { run, wait }
    }

    /// The payload of the button with this number.
    #[must_use]
    pub fn payload(&self, index: usize) -> String {
        format!("~{self}:{index}")
    }

    /// Whether `payload` belongs to a button of some question, of this wait or of another.
    #[must_use]
    pub fn is_question_button(payload: &str) -> bool {
        parse_payload(payload).is_some()
    }
}

impl fmt::Display for WaitToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}", self.run, self.wait)
    }
}

fn parse_payload(payload: &str) -> Option<(WaitToken, usize)> {
    let (token, index) = payload.strip_prefix('~')?.split_once(':')?;
    let (run, wait) = token.split_once('.')?;
    let run = u64::from_str_radix(run, 16).ok()?;
    let wait = u32::from_str_radix(wait, 16).ok()?;
    Some((WaitToken { run, wait }, index.parse().ok()?))
}

impl Question {
    /// Reads `message` as the answer to this question in the wait `token`. `shown` gives an
    /// option's label as the user saw it.
    pub fn read<'a>(
        &'a self,
        message: Message,
        token: &WaitToken,
        shown: impl Fn(&'a Text) -> Cow<'a, str>,
    ) -> Reading {
        if let Content::Button(press) = &message.content {
            match parse_payload(&press.payload) {
                Some((pressed, _)) if pressed != *token => return Reading::Expired,
                Some((_, index)) => return self.choose(message, index),
                // A button that some handler sent: its label is as good as typed.
                None => {}
            }
        }
        if self.options.is_empty() {
            return Reading::Answer(Answer::free(message));
        }
        let typed = message.body().unwrap_or_default().trim();
        let by_label = self
            .options
            .iter()
            .position(|option| option.value == typed || same_words(&shown(&option.label), typed));
        let chosen = by_label.or_else(|| {
            let number: usize = typed.parse().ok()?;
            number.checked_sub(1).filter(|index| *index < self.options.len())
        });
        match chosen {
            Some(index) => self.choose(message, index),
            None if self.only_options => Reading::NotOffered(message),
            None => Reading::Answer(Answer::free(message)),
        }
    }

    fn choose(&self, message: Message, index: usize) -> Reading {
        match self.options.get(index) {
            Some(option) => Reading::Answer(Answer::chosen(message, index, option.value())),
            None => Reading::Expired,
        }
    }
}

fn same_words(label: &str, typed: &str) -> bool {
    !typed.is_empty() && label.trim().to_lowercase() == typed.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ChatKey, ProviderId};
    use crate::message::ButtonPress;
    use crate::question;

    const TOKEN: WaitToken = WaitToken::new(0xabc, 2);

    fn chat() -> ChatKey {
        ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap()
    }

    fn read(question: &Question, message: Message) -> Reading {
        question.read(message, &TOKEN, |text| match text {
            Text::Plain(text) => Cow::Borrowed(&**text),
            _ => Cow::Borrowed(""),
        })
    }

    fn choice(reading: &Reading) -> Option<usize> {
        match reading {
            Reading::Answer(answer) => answer.choice(),
            _ => None,
        }
    }

    fn press(payload: String) -> Message {
        Message::new(chat(), Content::Button(ButtonPress::new(payload)))
    }

    #[test]
    fn an_option_is_chosen_by_its_button_its_label_or_its_number() {
        let sizes = question("Size?").buttons(["Small", "Large"]).only_buttons();
        for message in
            [press(TOKEN.payload(1)), Message::text(chat(), "large"), Message::text(chat(), " 2 ")]
        {
            assert_eq!(choice(&read(&sizes, message)), Some(1));
        }
    }

    #[test]
    fn a_label_that_is_a_number_wins_over_the_number_of_an_option() {
        let counts = question("How many?").buttons(["3", "2", "1"]);
        assert_eq!(choice(&read(&counts, Message::text(chat(), "1"))), Some(2));
    }

    #[test]
    fn a_button_of_another_wait_has_expired() {
        let sizes = question("Size?").buttons(["Small"]);
        let older = WaitToken::new(0xabc, 1);
        assert_eq!(read(&sizes, press(older.payload(0))), Reading::Expired);
        assert_eq!(read(&sizes, press(TOKEN.payload(7))), Reading::Expired);
    }

    #[test]
    fn other_words_are_an_answer_unless_only_buttons_are_taken() {
        let free = question("Size?").buttons(["Small"]);
        let message = Message::text(chat(), "huge");
        assert_eq!(read(&free, message.clone()), Reading::Answer(Answer::free(message.clone())));
        let strict = free.only_buttons();
        assert_eq!(read(&strict, message.clone()), Reading::NotOffered(message));
    }
}
