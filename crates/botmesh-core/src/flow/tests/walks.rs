//! Random walks through a flow that has every kind of step.

use std::time::Duration;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::chat::{Chat, key};
use crate::flow::{Input, Outcome};
use crate::message::{ChatEvent, Content, EventKind, Message};
use crate::{Flow, flow, form, question};

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Shop {
    item: String,
    count: u8,
    notes: Vec<String>,
    rounds: u8,
}

fn note() -> Flow<Vec<String>> {
    flow::<Vec<String>>("note")
        .ask_with(
            |notes: &Vec<String>| question(format!("Note {}?", notes.len())).timeout(SECOND * 5),
            |notes, answer| {
                notes.push(answer.text()?);
                Ok(())
            },
        )
        .choose("Another?", [("More", true), ("Enough", false)], |notes, more| {
            notes.push(more.to_string());
        })
        .say(|notes| notes.join("+"))
        .idle(SECOND, "Note, please.")
        .persistent()
}

const SECOND: Duration = Duration::from_secs(1);

fn shop() -> Flow<Shop> {
    flow::<Shop>("shop")
        .label("start")
        .say(|shop: &Shop| format!("Round {}.", shop.rounds))
        .menu("Where?", [("Order", "order"), ("Notes", "notes"), ("Talk", "talk")])
        .label("order")
        .form(
            form()
                .field("item", question("Item?").buttons(["Hat", "Cap"]), |shop: &mut Shop, a| {
                    shop.item = a.text()?;
                    Ok(())
                })
                .field("count", question("Count?").retry(3, "Number!"), |shop, a| {
                    shop.count = a.parse()?;
                    Ok(())
                })
                .confirm(|shop| format!("{} {}?", shop.count, shop.item)),
        )
        .when(|shop| shop.count > 2, |f| f.say_text("Many.").resume_after(SECOND * 60))
        .goto("again")
        .label("notes")
        .call(note(), |shop| shop.notes.clone(), |shop, notes| shop.notes = notes)
        .goto("again")
        .label("talk")
        .do_(|c| async move {
            c.update(|shop| shop.rounds += 1);
            c.say("Talking.").await?;
            let first = c.ask(question("First?").buttons(["1", "2"])).await?.text()?;
            c.say(format!("First is {first}.")).await?;
            let count = c.ask_for(question("Second?").retry(2, "No."), |a| a.parse()).await?;
            c.update(|shop| shop.count = count);
            c.say("Talked.").await
        })
        .label("again")
        .branch(|shop| shop.rounds < 3, "next")
        .end_with("Closed.")
        .label("next")
        .ask("Next?", |shop, _| {
            shop.rounds += 1;
            Ok(())
        })
        .goto("start")
        .label("late")
        .say_text("Late.")
        .goto("again")
        .timeout(SECOND * 30)
        .on_timeout("late")
        .idle(SECOND * 9, "Hello?")
        .cancel_on(["cancel"])
        .persistent()
}

#[derive(Debug, Clone)]
enum Move {
    Says(&'static str),
    Presses(usize),
    Event,
    TimedOut,
    Idle,
    Woken,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    const WORDS: [&str; 10] =
        ["order", "notes", "talk", "yes", "change", "3", "1", "hat", "more", "two"];
    let one = prop_oneof![
        12 => prop::sample::select(&WORDS[..]).prop_map(Move::Says),
        1 => Just(Move::Says("cancel")),
        4 => (0_usize..9).prop_map(Move::Presses),
        1 => Just(Move::Event),
        1 => Just(Move::TimedOut),
        2 => Just(Move::Idle),
        3 => Just(Move::Woken),
    ];
    prop::collection::vec(one, 1..60)
}

fn play(chat: Chat, step: &Move) -> Chat {
    match step {
        Move::Says(words) => chat.says(words),
        Move::Presses(back) => match chat.buttons.iter().rev().nth(*back).cloned() {
            Some((label, payload)) => chat.presses_payload(&payload, &label),
            None => chat,
        },
        Move::Event => {
            let event = ChatEvent::new(EventKind::Status);
            chat.sends(Message::new(key(), Content::Event(event)))
        }
        Move::TimedOut => chat.give(Input::TimedOut),
        Move::Idle => chat.give(Input::Idle),
        Move::Woken => chat.give(Input::Woken),
    }
}

/// What the run wants, as far as a restored run wants the same.
fn wants(chat: &Chat) -> String {
    match &chat.outcome {
        Some(Outcome::Finished(_)) => chat.end(),
        Some(Outcome::ResumeAfter(time)) => format!("rests {time:?}"),
        Some(Outcome::NotMine(message)) => format!("leaves {:?}", message.body()),
        Some(Outcome::Wait(_) | Outcome::Nothing) => "stands".to_owned(),
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A7: a flow that is restored before every message says and does what one says and does
    /// that was never interrupted.
    #[test]
    fn a_flow_that_dies_all_the_time_is_the_same_flow(walk in moves()) {
        let mut lives = Chat::new(shop(), false).give(Input::Enter);
        let mut dies = Chat::new(shop(), true).give(Input::Enter);
        for step in &walk {
            prop_assert_eq!(&lives.buttons, &dies.buttons);
            prop_assert_eq!(lives.run.token(), dies.run.token());
            prop_assert_eq!(wants(&lives), wants(&dies));
            prop_assert_eq!(lives.heard(), dies.heard(), "before {:?}", step);
            lives = play(lives, step);
            dies = play(dies, step);
        }
        prop_assert_eq!(lives.heard(), dies.heard());
    }
}

/// The walks above reach every step of the flow.
#[test]
fn the_walks_reach_all_that_the_flow_says() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut heard = std::collections::BTreeSet::new();
    for _ in 0..512 {
        let walk = moves().new_tree(&mut runner).unwrap().current();
        let mut chat = Chat::enter(shop());
        for step in &walk {
            chat = play(chat, step);
        }
        heard.extend(chat.heard());
    }
    let table = [
        "Round 2.",
        "Item? [Hat] [Cap]",
        "Number!",
        "Many.",
        "Note 2?",
        "Note, please.",
        "Talking.",
        "First is 1.",
        "Second?",
        "No.",
        "Talked.",
        "Closed.",
        "Late.",
        "Hello?",
        "Next?",
        "button.expired",
        "answer.too-many",
        "conversation.cancelled",
        "answer.not-offered [More] [Enough]",
    ];
    for expected in table {
        assert!(heard.contains(expected), "{expected}");
    }
}
