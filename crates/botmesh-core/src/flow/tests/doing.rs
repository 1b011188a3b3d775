//! Steps that are asynchronous functions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::conversation::ConversationEnded;
use crate::flow::{Input, Outcome};
use crate::{BotError, Flow, flow, question};

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Order {
    starts: u32,
    item: String,
    count: u32,
}

fn order() -> Flow<Order> {
    flow::<Order>("order")
        .do_(|c| async move {
            c.update(|order| order.starts += 1);
            c.say("Welcome.").await?;
            let item = c.ask("What?").await?.text()?;
            c.say(format!("{item}, good.")).await?;
            let count = c
                .ask_for(question("How many?").buttons(["1", "2"]).retry(3, "Hm?"), |answer| {
                    answer.parse()
                })
                .await?;
            let colour = c.ask("Which colour?").await?.text()?;
            c.update(|order| {
                order.item = format!("{colour} {item}");
                order.count = count;
            });
            Ok(())
        })
        .say(|order: &Order| format!("{} {} ({})", order.count, order.item, order.starts))
        .timeout(Duration::from_secs(60))
        .cancel_on(["cancel"])
        .persistent()
}

/// A5: a function asks several times, validates, and changes the state.
#[test]
fn a_function_asks_several_times_and_changes_the_state() {
    Chat::enter(order())
        .hears(["Welcome.", "What?"])
        .waits(Some(60), None, true)
        .says("hats")
        .hears(["hats, good.", "How many? [1] [2]"])
        .says("many")
        .hears(["Hm? [1] [2]"])
        .presses("2")
        .hears(["Which colour?"])
        .says("red")
        .hears(["2 red hats (1)"])
        .ends("Done");
}

/// A7: a function that waits at its first question goes on there, and says nothing twice.
#[test]
fn a_function_goes_on_at_its_first_question() {
    Chat::enter(order())
        .hears(["Welcome.", "What?"])
        .restarts()
        .says("hats")
        .hears(["hats, good.", "How many? [1] [2]"])
        .says("1")
        .says("red")
        .hears(["Which colour?", "1 red hats (1)"]);
}

/// F7: a function that waits at its second question is given the first answer again.
#[test]
fn a_function_keeps_its_first_answer() {
    Chat::enter(order())
        .says("hats")
        .says("many")
        .hears(["Welcome.", "What?", "hats, good.", "How many? [1] [2]", "Hm? [1] [2]"])
        .restarts()
        .restarts()
        .presses("2")
        .hears(["Which colour?"])
        .says("red")
        .hears(["2 red hats (1)"]);
}

/// F7: an answer that is too long to keep is asked for again, and the message that woke the
/// function answers nothing.
#[test]
fn an_answer_too_long_to_keep_is_asked_for_again() {
    let mut chat = Chat::enter(order()).says("hats");
    let body = order().compile().save(&chat.run, 10).unwrap();
    chat.heard();
    let mut restored = Chat::new(order(), false);
    restored.run = order().compile().restore(&body).unwrap();
    restored
        .says("2")
        .hears(["Welcome.", "What?"])
        .says("caps")
        .hears(["caps, good.", "How many? [1] [2]"]);
}

/// F8: a function that waits at a later question starts again, with the state as it was.
#[test]
fn a_function_starts_again_from_a_later_question() {
    Chat::enter(order())
        .says("hats")
        .says("2")
        .hears(["Welcome.", "What?", "hats, good.", "How many? [1] [2]", "Which colour?"])
        .restarts()
        .says("red")
        .hears(["Welcome.", "What?"])
        .says("caps")
        .says("1")
        .says("blue")
        .hears(["caps, good.", "How many? [1] [2]", "Which colour?", "1 blue caps (1)"]);
}

/// A5: a function learns that its user was silent, gave up or failed; left to `?` it ends the
/// flow as the flow says.
#[test]
fn what_interrupts_a_function_ends_the_flow() {
    let asked = || Chat::enter(order()).hears(["Welcome.", "What?"]);
    asked().give(Input::TimedOut).hears(["conversation.timeout"]).ends("TimedOut");
    asked().says("cancel").hears(["conversation.cancelled"]).ends("Cancelled");
    asked()
        .says("hats")
        .says("a")
        .says("b")
        .says("c")
        .hears([
            "hats, good.",
            "How many? [1] [2]",
            "Hm? [1] [2]",
            "Hm? [1] [2]",
            "answer.too-many",
        ])
        .ends("TooManyAttempts");
    // The same in a process that has only the checkpoint.
    asked().restarts().give(Input::TimedOut).hears(["conversation.timeout"]).ends("TimedOut");
    asked().restarts().says("cancel").hears(["conversation.cancelled"]).ends("Cancelled");
    let later = || asked().says("hats").says("2").restarts();
    let hears = ["hats, good.", "How many? [1] [2]", "Which colour?"];
    later().hears(hears).give(Input::TimedOut).hears(["conversation.timeout"]).ends("TimedOut");
    later().hears(hears).says("cancel").hears(["conversation.cancelled"]).ends("Cancelled");
}

/// A5: a function may go on when its user was silent, and may fail on its own.
#[test]
fn a_function_decides_what_silence_means() {
    let patient = flow::<()>("patient").do_(|c| async move {
        let answer = c.ask("Well?").await;
        let late = |error: &BotError| error.is::<ConversationEnded>();
        match answer {
            Err(error) if late(&error) => c.say("Never mind.").await.map(drop),
            other => Err(BotError::message(format!("broken: {:?}", other?.as_text()))),
        }
    });
    let patient = patient.compile();
    let late = Chat::enter(patient.clone()).give(Input::TimedOut);
    late.hears(["Well?", "Never mind."]).ends("Done");
    Chat::enter(patient).says("x").ends("failed: broken: Some(\"x\")");
}

/// A4: a panic in a function fails the run.
#[test]
fn a_panic_in_a_function_fails_the_run() {
    let early = flow::<()>("early").do_(|c| {
        assert!(format!("{c:?}").is_empty(), "early");
        async { Ok(()) }
    });
    Chat::enter(early).ends("failed: user code panicked: early");
    let late = flow::<()>("late").do_(|c| async move {
        c.ask("?").await?;
        if c.read(|()| true) {
            panic!("late");
        }
        Ok(())
    });
    Chat::enter(late).says("x").ends("failed: user code panicked: late");
}

/// A5: the state comes back from a function, or the run fails; it is never silently lost.
#[test]
fn a_function_whose_state_is_kept_elsewhere_fails() {
    let kept = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let shelf = std::sync::Arc::clone(&kept);
    let leaking = flow::<u8>("leaking").do_(move |c| {
        *shelf.lock() = Some(c);
        async { Ok(()) }
    });
    let chat = Chat::enter(leaking);
    assert!(chat.end().contains("its Doing is still kept"), "{}", chat.end());
    assert!(kept.lock().is_some());
}

/// A5: a function may rest without holding the chat. A7: after a restart its step begins again
/// when the rest is over.
#[test]
fn a_function_may_rest() {
    let rests = || {
        flow::<()>("rests")
            .do_(|c| async move {
                c.say("Later.").await?;
                c.resume_after(Duration::from_secs(60)).await?;
                c.say("Now.").await
            })
            .cancel_on(["cancel"])
            .persistent()
    };
    let resting = || Chat::enter(rests()).hears(["Later."]);
    let chat = resting();
    assert!(matches!(chat.outcome, Some(Outcome::ResumeAfter(time)) if time.as_secs() == 60));
    chat.says("hm").leaves_it_to_others().give(Input::Woken).hears(["Now."]).ends("Done");
    resting().says("cancel").hears(["conversation.cancelled"]).ends("Cancelled");
    let chat = resting().restarts().says("hm").leaves_it_to_others().give(Input::Woken);
    chat.hears(["Later."]).give(Input::Woken).hears(["Now."]).ends("Done");
}

/// A5: what nobody read when the run ends is handed back.
#[test]
fn a_message_that_nobody_read_is_handed_back() {
    let silent = || flow::<()>("silent").say_text("Bye.").persistent();
    let mut chat = Chat::new(silent(), false).restarts().says("hello").hears(["Bye."]).ends("Done");
    assert_eq!(chat.run.take_unread().unwrap().body(), Some("hello"));
    assert!(chat.run.take_unread().is_none());
}

/// F7: a function that was answered and did not wait again has not asked when its answer is too
/// long to keep, so it asks again.
#[test]
fn a_function_whose_answer_was_not_kept_asks_again() {
    let rests = flow::<()>("rests")
        .do_(|c| async move {
            let name = c.ask("Name?").await?.text()?;
            c.resume_after(Duration::from_secs(60)).await?;
            c.say(format!("{name}!")).await
        })
        .persistent()
        .compile();
    let resting = Chat::enter(rests.clone()).says("Ana").hears(["Name?"]);
    let body = rests.save(&resting.run, 0).unwrap();
    let mut restored = Chat::new(rests, false);
    restored.run = restored.restored(&body);
    restored.give(Input::Woken).hears(["Name?"]).says("Eva").give(Input::Woken).hears(["Eva!"]);
    resting.restarts().give(Input::Woken).give(Input::Woken).hears(["Ana!"]);
}
