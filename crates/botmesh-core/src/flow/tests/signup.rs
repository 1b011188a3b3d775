//! The flow of the front page.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chat::{Chat, is_persistent, text};
use crate::flow::{FlowDefinition, Input, Outcome};
use crate::message::{Content, Media, MediaKind, Message};
use crate::{Flow, command, flow, question};

#[derive(Default, Serialize, Deserialize)]
struct Signup {
    name: String,
    age: u8,
}

pub(super) fn signup() -> std::sync::Arc<dyn FlowDefinition> {
    let flow: Flow<Signup> = flow("signup")
        .enter_on(command("signup"))
        .ask("What is your name?", |s: &mut Signup, answer| {
            s.name = answer.text()?;
            Ok(())
        })
        .ask(
            question("How old are you?")
                .retry(3, "A number, please.")
                .timeout(Duration::from_secs(600)),
            |s, answer| {
                s.age = answer.parse()?;
                Ok(())
            },
        )
        .say(|s| format!("Nice to meet you, {} ({}).", s.name, s.age))
        .persistent();
    flow.compile()
}

/// A5: asking, typed answers, and saying what came of them.
#[test]
fn a_signup_is_asked_answered_and_greeted() {
    Chat::enter(signup())
        .hears(["What is your name?"])
        .waits(None, None, true)
        .says(" Ana ")
        .hears(["How old are you?"])
        .waits(Some(600), None, true)
        .says("33")
        .hears(["Nice to meet you, Ana (33)."])
        .ends("Done");
}

/// A5: a wrong answer is told why and asked again, as often as the question says.
#[test]
fn a_wrong_answer_is_told_and_too_many_end_the_flow() {
    let asked = Chat::enter(signup()).says("Ana").hears(["What is your name?", "How old are you?"]);
    asked
        .says("many")
        .hears(["A number, please."])
        .waits(Some(600), None, true)
        .says("300")
        .hears(["A number, please."])
        .says("x")
        .hears(["answer.too-many"])
        .ends("TooManyAttempts");
}

/// A5: a message without words, and one of a mebibyte of them.
#[test]
fn a_picture_is_no_name_but_a_mebibyte_is_one() {
    let picture = Content::Media(Media::new(MediaKind::Image, "file"));
    let long = "ñ".repeat(1 << 19);
    let mut chat = Chat::enter(signup())
        .sends(Message::new(super::chat::key(), picture))
        .hears(["What is your name?", "answer.text-needed"])
        .says(&long)
        .says("33")
        .ends("Done");
    assert!(chat.heard().concat().contains(&long));
}

/// A5: of 20 messages at once the first three go to the flow and the others are nobody's.
#[test]
fn of_twenty_messages_three_answer_three_questions() {
    let flow = flow::<Vec<String>>("three")
        .ask("One?", keep)
        .ask("Two?", keep)
        .ask("Three?", keep)
        .say(|answers| answers.join(" "));
    let mut chat = Chat::enter(flow);
    let mut others = 0;
    for number in 1..=20 {
        chat = chat.sends(text(&number.to_string()));
        others += usize::from(matches!(chat.outcome, Some(Outcome::NotMine(_))));
    }
    assert_eq!(others, 17);
    chat.hears(["One?", "Two?", "Three?", "1 2 3"]);
}

fn keep(answers: &mut Vec<String>, answer: crate::Answer) -> Result<(), crate::Invalid> {
    answers.push(answer.text()?);
    Ok(())
}

/// A7: a run that is restored goes on at the same question, which is not asked again.
#[test]
fn a_restored_signup_goes_on_at_the_same_question() {
    assert!(is_persistent(&signup()));
    Chat::enter(signup())
        .hears(["What is your name?"])
        .restarts()
        .says("Ana")
        .hears(["How old are you?"])
        .says("x")
        .hears(["A number, please."])
        .restarts()
        .says("y")
        .hears(["A number, please."])
        .restarts()
        .give(Input::Enter)
        .hears([])
        .waits(Some(600), None, false)
        .says("33")
        .hears(["Nice to meet you, Ana (33)."])
        .ends("Done");
}

/// A7: a run that was saved before its question was asked asks it, and the message that woke
/// the run is the answer.
#[test]
fn a_run_saved_before_its_question_asks_and_takes_the_message() {
    Chat::new(signup(), false)
        .restarts()
        .says("Ana")
        .hears(["What is your name?", "How old are you?"]);
}

/// A7: what is written before a question goes out lets a new process ask it; the answer that
/// was taken is not lost, and a wrong answer is not asked for anew.
#[test]
fn what_is_saved_before_a_question_is_said_asks_it_again() {
    let mut chat = Chat::enter(signup()).says("Ana");
    chat.heard();
    let unasked = signup().save_unasked(&chat.run, 0).unwrap();
    let restored = || {
        let mut chat = Chat::new(signup(), false);
        chat.run = signup().restore(&unasked).unwrap();
        chat
    };
    assert_ne!(unasked, chat.saved());
    restored().give(Input::Enter).hears(["How old are you?"]).waits(Some(600), None, true);
    let again = restored().says("33").hears(["How old are you?", "Nice to meet you, Ana (33)."]);
    again.ends("Done");
    let refused = chat.says("x");
    assert_eq!(signup().save_unasked(&refused.run, 0).unwrap(), refused.saved());
}
