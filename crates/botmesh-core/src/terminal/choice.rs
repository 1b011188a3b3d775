use crate::id::MessageId;
use crate::message::{ButtonPress, OutgoingButton};

/// The numbered choices that a typed line can press.
///
/// They end with the first press, and when the bot goes on without buttons after the user said
/// something else: from then on a number is a number again. A question that still waits reads
/// typed numbers and labels itself.
#[derive(Debug, Default)]
pub(super) struct Choices {
    message: Option<MessageId>,
    buttons: Vec<OutgoingButton>,
    user_went_on: bool,
}

impl Choices {
    /// The bot has said something, with these buttons.
    pub(super) fn shown(&mut self, message: &MessageId, buttons: &[OutgoingButton]) {
        if !buttons.is_empty() {
            *self = Self {
                message: Some(message.clone()),
                buttons: buttons.to_vec(),
                user_went_on: false,
            };
        } else if self.user_went_on {
            *self = Self::default();
        }
    }

    /// The bot has replaced a message.
    pub(super) fn edited(&mut self, message: &MessageId, buttons: &[OutgoingButton]) {
        if !buttons.is_empty() {
            self.shown(message, buttons);
        } else {
            self.deleted(message);
        }
    }

    /// The bot has deleted a message.
    pub(super) fn deleted(&mut self, message: &MessageId) {
        if self.message.as_ref() == Some(message) {
            *self = Self::default();
        }
    }

    /// The press that the user means by `typed`: the number or the label of a choice.
    pub(super) fn typed(&mut self, typed: &str) -> Option<ButtonPress> {
        let typed = typed.trim();
        let by_number = || {
            let number = typed.parse::<usize>().ok().filter(|_| !typed.starts_with('+'))?;
            self.buttons.get(number.checked_sub(1)?)
        };
        let lower = typed.to_lowercase();
        let by_label = self.buttons.iter().find(|b| b.label.trim().to_lowercase() == lower);
        let Some(button) = by_label.or_else(by_number) else {
            self.user_went_on = true;
            return None;
        };
        let mut press = ButtonPress::new(button.payload.clone()).with_label(button.label.clone());
        press.message.clone_from(&self.message);
        *self = Self::default();
        Some(press)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Choices {
        let mut choices = Choices::default();
        let buttons =
            ["Small", "3", "Ñandú"].map(|label| OutgoingButton::new(label, format!("p:{label}")));
        choices.shown(&id("m1"), &buttons);
        choices
    }

    fn id(text: &str) -> MessageId {
        MessageId::new(text).unwrap()
    }

    fn payload(typed: &str) -> Option<String> {
        shown().typed(typed).map(|press| press.payload)
    }

    /// A11: a number or a label, in any case, presses the button with its payload.
    #[test]
    fn a_number_or_a_label_presses() {
        assert_eq!(payload("1").as_deref(), Some("p:Small"));
        assert_eq!(payload(" small ").as_deref(), Some("p:Small"));
        assert_eq!(payload("ñANDÚ").as_deref(), Some("p:Ñandú"));
        for no_choice in ["0", "4", "-1", "+1", "1.", "smal", "99999999999999999999999"] {
            assert_eq!(payload(no_choice), None, "{no_choice}");
        }
    }

    #[test]
    fn a_label_that_is_a_number_wins_over_the_number() {
        assert_eq!(payload("3").as_deref(), Some("p:3"));
        assert_eq!(payload("2").as_deref(), Some("p:3"));
    }

    /// A11: a button is pressed once; after that a number is plain text.
    #[test]
    fn the_second_press_is_text() {
        let mut choices = shown();
        let press = choices.typed("1").unwrap();
        assert_eq!((press.label.as_deref(), press.message), (Some("Small"), Some(id("m1"))));
        assert_eq!(choices.typed("1"), None);
    }

    #[test]
    fn choices_outlive_a_further_line_of_the_bot_but_not_another_question() {
        let mut choices = shown();
        choices.shown(&id("m2"), &[]);
        assert_eq!(choices.typed("something else"), None);
        assert!(shown().typed("1").is_some());
        choices.shown(&id("m3"), &[]);
        assert_eq!(choices.typed("1"), None);
    }

    #[test]
    fn editing_or_deleting_a_message_takes_its_choices_away() {
        let mut choices = shown();
        choices.deleted(&id("m9"));
        choices.edited(&id("m1"), &[OutgoingButton::new("New", "n")]);
        assert_eq!(choices.typed("small"), None);
        assert!(choices.typed("new").is_some());
        let mut choices = shown();
        choices.edited(&id("m1"), &[]);
        assert_eq!(choices.typed("1"), None);
    }
}
