//! The payload of a button and the words of an answer, which any user can send.

use std::borrow::Cow;

use botmesh_core::message::ButtonPress;
use botmesh_core::question::WaitToken;
use botmesh_core::{ChatKey, Content, Message, ProviderId, Text, question};

use crate::memory::bounded;

const TOKEN: WaitToken = WaitToken::new(0xfeed_0000_beef_0001, 7);

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 32, 4096, |_| {
        let question = question("Which size?").buttons(["Small", "Large", "3"]).only_buttons();
        let shown = |text: &Text| match text {
            Text::Plain(text) => Cow::Owned(text.to_string()),
            _ => Cow::Borrowed(""),
        };
        let chat = ChatKey::new(&ProviderId::new("fuzz").unwrap(), "ana").unwrap();
        let press = Message::new(chat.clone(), Content::Button(ButtonPress::new(text)));
        let _ = question.read(press, &TOKEN, shown);
        let _ = question.read(Message::text(chat, text), &TOKEN, shown);
        // Only what a question wrote is taken for its button: digits may be written otherwise, but
        // not so that another button is meant.
        if WaitToken::is_question_button(text) {
            assert!(text.starts_with('~') && text.contains('.') && text.contains(':'));
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let foreign = WaitToken::new(u64::MAX, u32::MAX);
    [TOKEN.payload(0), TOKEN.payload(9), foreign.payload(1), "large".to_owned(), "2".to_owned()]
        .map(String::into_bytes)
        .into()
}
