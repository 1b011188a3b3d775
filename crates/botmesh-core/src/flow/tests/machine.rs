//! Jumps, sub-flows, forms, pauses.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::flow::{Input, Outcome};
use crate::{Answer, Flow, Invalid, flow, flow_from, form, question};

fn word(words: &mut Vec<String>, answer: Answer) -> Result<(), Invalid> {
    words.push(answer.text()?);
    Ok(())
}

/// A5: labels, jumps and branches.
#[test]
fn a_branch_leads_back_until_the_state_says_otherwise() {
    let words = flow::<Vec<String>>("words")
        .label("more")
        .ask_with(|words: &Vec<String>| format!("Word {}?", words.len() + 1), word)
        .branch(|words| words.len() < 3, "more")
        .goto("sum")
        .say_text("never")
        .label("sum")
        .say(|words| words.concat());
    Chat::enter(words)
        .says("a")
        .says("b")
        .says("c")
        .hears(["Word 1?", "Word 2?", "Word 3?", "abc"])
        .ends("Done");
}

/// A5: steps that are gone through only when a test is true, within others.
#[test]
fn when_goes_through_its_steps_only_when_its_test_is_true() {
    let count = || {
        flow::<u32>("count")
            .ask("How many?", |count: &mut u32, answer| {
                *count = answer.parse()?;
                Ok(())
            })
            .when(
                |count| *count > 10,
                |f| {
                    f.say_text("Many!")
                        .when(|count| *count > 100, |f| f.say_text("Too many!").end())
                        .say_text("But fine.")
                },
            )
            .say(|count| format!("{count} it is."))
    };
    let said = |words: &str| Chat::enter(count()).says(words);
    said("5").hears(["How many?", "5 it is."]).ends("Done");
    said("50").hears(["How many?", "Many!", "But fine.", "50 it is."]).ends("Done");
    said("500").hears(["How many?", "Many!", "Too many!"]).ends("Done");
}

/// A5: a menu leads where its choices say.
#[test]
fn a_menu_leads_to_labels() {
    let help = || {
        flow::<()>("help")
            .menu("About?", [("Prices", "prices"), ("Hours", "hours")])
            .label("prices")
            .end_with("One euro.")
            .label("hours")
            .end_with("9 to 5.")
            .persistent()
    };
    Chat::enter(help()).presses("Hours").hears(["About? [Prices] [Hours]", "9 to 5."]);
    Chat::enter(help()).restarts().says("1").hears(["About? [Prices] [Hours]", "One euro."]);
}

#[derive(Default, Serialize, Deserialize)]
struct Address {
    street: String,
    town: String,
}

fn address() -> Flow<Address> {
    flow::<Address>("address")
        .form(
            form()
                .field("street", "Street?", |address: &mut Address, answer| {
                    address.street = answer.text()?;
                    Ok(())
                })
                .field_with(
                    "town",
                    |address: &Address| format!("{} in which town?", address.street),
                    |address, answer| {
                        address.town = answer.text()?;
                        Ok(())
                    },
                )
                .confirm(|address| format!("{}, {}?", address.street, address.town)),
        )
        .say(|address| format!("Sent to {}.", address.town))
        .persistent()
}

/// A5: a form asks for its fields, is confirmed, changed from its first field on, or cancelled.
/// A7: each of its fields is a place to go on from.
#[test]
fn a_form_is_confirmed_changed_or_cancelled() {
    let filled = || {
        Chat::enter(address())
            .says("Main")
            .restarts()
            .says("Lima")
            .hears(["Street?", "Main in which town?", "Main, Lima? [Yes] [Change] [Cancel]"])
            .restarts()
    };
    filled().says("yes").hears(["Sent to Lima."]).ends("Done");
    filled().presses("Cancel").hears(["conversation.cancelled"]).ends("Cancelled");
    filled()
        .says("what?")
        .hears(["answer.not-offered [Yes] [Change] [Cancel]"])
        .presses("Change")
        .hears(["Street?"])
        .says("Side")
        .says("Cusco")
        .presses("Yes")
        .hears(["Side in which town?", "Side, Cusco? [Yes] [Change] [Cancel]", "Sent to Cusco."]);
}

#[derive(Default, Serialize, Deserialize)]
struct Order {
    item: String,
    street: String,
}

fn order() -> Flow<Order> {
    flow::<Order>("order")
        .ask("What?", |order: &mut Order, answer| {
            order.item = answer.text()?;
            Ok(())
        })
        .call(
            address(),
            |order: &Order| Address { town: order.item.clone(), ..Address::default() },
            |order, address| order.street = address.street,
        )
        .say(|order| format!("{} goes to {}.", order.item, order.street))
        .persistent()
}

/// A5: a sub-flow has its own state and returns to its caller. A7: and is restored within it.
#[test]
fn a_sub_flow_is_called_restored_and_returns() {
    Chat::enter(order())
        .says("Hat")
        .says("Main")
        .restarts()
        .says("Lima")
        .says("yes")
        .hears([
            "What?",
            "Street?",
            "Main in which town?",
            "Main, Lima? [Yes] [Change] [Cancel]",
            "Sent to Lima.",
            "Hat goes to Main.",
        ])
        .ends("Done");
}

/// A5: what a sub-flow does not say about waits, its caller says.
#[test]
fn a_sub_flow_has_the_settings_of_its_caller_where_it_has_none() {
    let sub = || {
        flow::<u8>("sub").ask(question("Sub?").retry(1, "-"), |_, _| Err(Invalid::unexplained()))
    };
    let caller = |sub: Flow<u8>| {
        flow::<u8>("caller")
            .call(sub, |_| 0, |_, _| ())
            .end()
            .label("late")
            .end_with("Late.")
            .label("wrong")
            .end_with("Wrong.")
            .timeout(Duration::from_secs(60))
            .idle(Duration::from_secs(5), "Still there?")
            .on_timeout("late")
            .on_failure("wrong")
            .cancel_on(["no"])
    };
    let asked = || Chat::enter(caller(sub())).hears(["Sub?"]).waits(Some(60), Some(5), true);
    asked().give(Input::TimedOut).hears(["Late."]).ends("Done");
    asked().says("x").hears(["Wrong."]).ends("Done");
    asked().says("no").hears(["conversation.cancelled"]).ends("Cancelled");
    asked().give(Input::Idle).hears(["Still there?"]);

    let own = sub()
        .end()
        .label("own")
        .say_text("Own.")
        .timeout(Duration::from_secs(7))
        .idle(Duration::from_secs(2), "Hm?")
        .on_timeout("own");
    let asked = Chat::enter(caller(own)).hears(["Sub?"]).waits(Some(7), Some(2), true);
    asked.give(Input::Idle).give(Input::TimedOut).hears(["Hm?", "Own."]).ends("Done");
}

/// A5: sub-flows within sub-flows, as deep as one likes.
#[test]
fn deep_sub_flows_return_one_after_the_other() {
    let mut deep = flow_from("0", || 0_u32)
        .ask("Number?", |number: &mut u32, answer| {
            *number = answer.parse()?;
            Ok(())
        })
        .persistent();
    for depth in 1..=200 {
        deep = flow::<u32>(depth.to_string())
            .call(deep, |number| *number, |number, returned| *number = returned + 1)
            .persistent();
    }
    let deep = deep.say(|number| number.to_string());
    Chat::enter(deep).restarts().says("7").hears(["Number?", "207"]).ends("Done");
}

/// A5: a pause that holds the chat, and one that does not.
#[test]
fn a_sleep_holds_the_chat_and_a_rest_leaves_it() {
    let flow = || {
        flow::<()>("slow")
            .say_text("One.")
            .sleep(Duration::from_secs(2))
            .say_text("Two.")
            .resume_after(Duration::from_secs(3600))
            .say_text("Three.")
            .cancel_on(["stop"])
            .persistent()
    };
    let slept = Chat::enter(flow()).hears(["One."]);
    assert!(matches!(slept.outcome, Some(Outcome::Sleep(time)) if time.as_secs() == 2));
    let rests = || Chat::enter(flow()).give(Input::Woken).hears(["One.", "Two."]);
    let chat = rests();
    assert!(matches!(chat.outcome, Some(Outcome::ResumeAfter(time)) if time.as_secs() == 3600));
    assert!(chat.run.is_paused());
    chat.says("hello")
        .leaves_it_to_others()
        .restarts()
        .says("hello")
        .leaves_it_to_others()
        .give(Input::Woken)
        .hears(["Three."])
        .ends("Done");
    rests().says("stop").hears(["conversation.cancelled"]).ends("Cancelled");
    rests().restarts().says("stop").hears(["conversation.cancelled"]).ends("Cancelled");
    // A process that dies while it sleeps sleeps again.
    let again = slept.restarts().give(Input::Enter).hears([]);
    assert!(matches!(again.outcome, Some(Outcome::Sleep(_))));
}

/// A5: a loop that never waits is stopped, and what it said is not said.
#[test]
fn a_loop_that_never_waits_fails_in_silence() {
    let endless = flow::<()>("endless").label("a").say_text("x").goto("a");
    let failed = Chat::enter(endless).hears([]);
    assert!(failed.end().contains("without waiting"), "{}", failed.end());
    let nowhere = flow::<()>("nowhere").goto("x");
    assert!(Chat::enter(nowhere).end().contains("jumps to \"x\""));
}

/// D5: what comes too late, or to a run that has ended, changes nothing.
#[test]
fn what_comes_too_late_changes_nothing() {
    let asks = || flow::<()>("asks").ask("Well?", |(), _| Ok(()));
    let mut chat = Chat::enter(asks());
    chat = chat.give(Input::Woken);
    assert!(matches!(chat.outcome, Some(Outcome::Nothing)));
    chat = chat.give(Input::ScriptFinished(Ok(())));
    assert!(matches!(chat.outcome, Some(Outcome::Nothing)));
    chat = chat.hears(["Well?"]).says("x").ends("Done");
    for input in [Input::TimedOut, Input::Idle, Input::Enter, Input::Woken] {
        chat = chat.give(input);
        assert!(matches!(chat.outcome, Some(Outcome::Nothing)));
    }
    chat.says("y").leaves_it_to_others().hears([]);
}

/// A5: waiting costs little memory beside the user's state.
#[test]
fn a_waiting_run_is_small() {
    let chat = Chat::enter(order()).says("Hat");
    let frames = chat.run.frames.capacity() * size_of::<crate::flow::run::Frame>();
    assert!(size_of_val(&chat.run) + frames <= 512, "{} + {frames}", size_of_val(&chat.run));
}
