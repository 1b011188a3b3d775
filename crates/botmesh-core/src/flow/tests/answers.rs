//! Answers, buttons, cancel words and silence.

use std::time::Duration;

use super::chat::{Chat, key};
use crate::flow::Input;
use crate::message::{ChatEvent, Content, EventKind, Message, Reaction};
use crate::{Flow, MessageId, flow, question};

#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
enum Size {
    #[default]
    None,
    Small,
    Large,
}

fn sizes() -> Flow<Size> {
    flow::<Size>("sizes")
        .choose(
            question("Which size?").retry(3, "Press a button."),
            [("Small", Size::Small), ("Large", Size::Large)],
            |size, chosen| *size = chosen,
        )
        .ask("For whom?", |_, answer| answer.text().map(drop))
        .say(|size| format!("{size:?} it is."))
        .persistent()
}

/// A5: a choice is made by its button, its words or its number, and is typed data.
#[test]
fn a_choice_is_pressed_or_typed_and_is_data() {
    let asked = || Chat::enter(sizes()).hears(["Which size? [Small] [Large]"]);
    for chat in [asked().presses("Large"), asked().says("large"), asked().says("2")] {
        chat.hears(["For whom?"]).says("me").hears(["Large it is."]).ends("Done");
    }
}

/// A5: what was not offered counts as an attempt, and the buttons are shown again.
#[test]
fn what_is_not_offered_is_refused_and_the_buttons_come_again() {
    let chat = Chat::enter(sizes()).hears(["Which size? [Small] [Large]"]);
    let first_button = chat.payload_of("Small");
    chat.says("huge")
        .hears(["Press a button. [Small] [Large]"])
        // The buttons of both messages are good.
        .presses_payload(&first_button, "Small")
        .hears(["For whom?"]);
    let plain = flow::<()>("plain").menu("Where?", [("Here", "x")]).label("x").end();
    Chat::enter(plain)
        .says("there")
        .hears(["Where? [Here]", "answer.not-offered [Here]"])
        .presses("Here")
        .ends("Done");
}

/// A5: a button pressed twice, or after its time, has expired; that is no wrong answer.
#[test]
fn a_button_pressed_twice_or_late_has_expired() {
    let chat = Chat::enter(sizes());
    let small = chat.payload_of("Small");
    chat.presses("Small")
        .hears(["Which size? [Small] [Large]", "For whom?"])
        .presses_payload(&small, "Small")
        .hears(["button.expired"])
        .waits(None, None, false)
        .restarts()
        .presses_payload(&small, "Small")
        .hears(["button.expired"])
        .says("me")
        .hears(["Small it is."])
        .presses_payload(&small, "Small")
        .leaves_it_to_others();
}

/// A5: what merely happens in a chat answers nothing.
#[test]
fn events_and_reactions_are_no_answers() {
    let read = Content::Event(ChatEvent::new(EventKind::Status));
    let liked = Reaction { message: MessageId::new("1").unwrap(), emoji: Some("👍".into()) };
    let mut chat = Chat::enter(sizes());
    for content in [read, Content::Reaction(liked)] {
        chat = chat.sends(Message::new(key(), content.clone())).leaves_it_to_others();
        chat = chat.restarts().sends(Message::new(key(), content)).leaves_it_to_others();
    }
    chat.presses("Small").hears(["Which size? [Small] [Large]", "For whom?"]);
}

fn patient() -> Flow<()> {
    flow::<()>("patient")
        .ask("Well?", |(), answer| answer.text().map(drop))
        .ask(question("And?").timeout(Duration::from_secs(5)), |(), answer| answer.text().map(drop))
        .timeout(Duration::from_secs(60))
        .idle(Duration::from_secs(20), "Are you there?")
        .persistent()
}

/// A5: a wait has the timeout of its question, else that of the flow, and ends the flow.
#[test]
fn a_wait_that_lasts_too_long_ends_the_flow() {
    Chat::enter(patient())
        .waits(Some(60), Some(20), true)
        .says("well")
        .waits(Some(5), Some(20), true)
        .give(Input::TimedOut)
        .hears(["Well?", "And?", "conversation.timeout"])
        .ends("TimedOut");
}

/// A5: the idle watchdog speaks once in each wait.
#[test]
fn the_idle_watchdog_speaks_once_in_each_wait() {
    Chat::enter(patient())
        .give(Input::Idle)
        .hears(["Well?", "Are you there?"])
        .waits(Some(60), None, false)
        .give(Input::Idle)
        .restarts()
        .give(Input::Idle)
        .hears([])
        .says("well")
        .waits(Some(5), Some(20), true)
        .restarts()
        .give(Input::Idle)
        .hears(["And?", "Are you there?"]);
}

/// A5: cancel words, of the flow and of the language, end the flow while it waits.
#[test]
fn cancel_words_end_the_flow() {
    let asking = || {
        flow::<()>("cancellable")
            .ask("Well?", |(), answer| answer.text().map(drop))
            .cancel_on(["Enough"])
            .cancellable()
            .persistent()
    };
    for word in [" enough ", "CANCEL", "Stop it"] {
        let chat = Chat::enter(asking()).hears(["Well?"]);
        chat.says(word).hears(["conversation.cancelled"]).ends("Cancelled");
        let chat = Chat::enter(asking()).restarts().says(word);
        chat.hears(["Well?", "conversation.cancelled"]).ends("Cancelled");
    }
    Chat::enter(asking()).says("stop").ends("Done");
    let deaf = flow::<()>("deaf").ask("Well?", |(), answer| answer.text().map(drop));
    Chat::enter(deaf).says("cancel").ends("Done");
}

/// A5: an offered answer is an answer though its words would cancel.
#[test]
fn an_offered_answer_wins_over_a_cancel_word() {
    let asking = || {
        flow::<bool>("stop")
            .choose("Stop it?", [("Stop it", true), ("Go on", false)], |stop, chosen| {
                *stop = chosen;
            })
            .say(|stop| format!("{stop}"))
            .cancellable()
    };
    Chat::enter(asking()).says("stop it").hears(["Stop it? [Stop it] [Go on]", "true"]);
    Chat::enter(asking()).says("cancel").ends("Cancelled");
}

/// A5: the timeout and too many wrong answers may lead elsewhere.
#[test]
fn timeout_and_failure_lead_where_the_flow_says() {
    let asking = || {
        flow::<u8>("ways-out")
            .label("start")
            .ask(question("Number?").retry(2, "No."), |number, answer| {
                *number = answer.parse()?;
                Ok(())
            })
            .end()
            .label("late")
            .say_text("Too late, once more.")
            .goto("start")
            .label("wrong")
            .end_with("Let us talk on the phone.")
            .timeout(Duration::from_secs(60))
            .on_timeout("late")
            .on_failure("wrong")
    };
    Chat::enter(asking())
        .says("x")
        .hears(["Number?", "No."])
        .give(Input::TimedOut)
        .hears(["Too late, once more.", "Number?"])
        .says("x")
        .hears(["No."])
        .says("x")
        .hears(["Let us talk on the phone."])
        .ends("Done");
}

/// A4: a panic in user code fails the run and nothing else.
#[test]
fn a_panic_in_user_code_fails_the_run() {
    let validator = flow::<()>("a").ask("Well?", |(), _| panic!("validator"));
    Chat::enter(validator).says("x").ends("failed: user code panicked: validator");
    let say = flow::<u8>("b").say(|number| format!("{}", [1, 2][usize::from(*number) + 9]));
    let end = Chat::enter(say).end();
    assert!(end.starts_with("failed: user code panicked: index out of bounds"), "{end}");
    let test = flow::<()>("c").branch(|()| panic!("test"), "x").label("x").end();
    Chat::enter(test).ends("failed: user code panicked: test");
    let initial = crate::flow_from("d", || -> u8 { panic!("initial") }).say_text("x").compile();
    assert_eq!(initial.start(1).unwrap_err().to_string(), "user code panicked: initial");
}
