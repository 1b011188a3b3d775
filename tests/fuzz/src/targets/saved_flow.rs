//! Checkpoints: where a flow stands, as it lies in a store.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use botmesh_core::flow::{FlowDefinition, Input, SavedFlow};
use botmesh_core::{ChatKey, Message, ProviderId, Text, command, flow, question};
use serde::{Deserialize, Serialize};

use crate::memory::bounded;

#[derive(Default, Serialize, Deserialize)]
struct Order {
    name: String,
    count: u8,
    notes: Vec<String>,
}

pub(super) static ORDER: LazyLock<Arc<dyn FlowDefinition>> = LazyLock::new(|| {
    let address = flow::<Order>("address")
        .ask("Where to?", |order, answer| {
            order.notes.push(answer.text()?);
            Ok(())
        })
        .persistent();
    flow::<Order>("order")
        .enter_on(command("order"))
        .ask("What is your name?", |order, answer| {
            order.name = answer.text()?;
            Ok(())
        })
        .ask(question("How many?").buttons(["1", "2"]).retry(3, "A number."), |order, answer| {
            order.count = answer.parse()?;
            Ok(())
        })
        .call(address, |_| Order::default(), |order, address| order.notes.extend(address.notes))
        .resume_after(Duration::from_secs(60))
        .do_(|doing| async move {
            let note = doing.ask("Anything else?").await?.text()?;
            doing.update(|order| order.notes.push(note));
            Ok(())
        })
        .say(|order| format!("{} for {}", order.count, order.name))
        .persistent()
        .compile()
});

fn shown(text: &Text) -> Cow<'_, str> {
    match text {
        Text::Plain(text) => Cow::Borrowed(text),
        _ => Cow::Borrowed("words"),
    }
}

fn says(words: &str) -> Input {
    let chat = ChatKey::new(&ProviderId::new("fuzz").unwrap(), "ana").unwrap();
    Input::Message(Message::text(chat, words))
}

pub(crate) fn run(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    let flow = &*ORDER;
    bounded(bytes, 256, 64 << 10, |_| {
        let _ = SavedFlow::read(body);
        let Ok(mut run) = flow.restore(body) else { return };
        let saved = flow.save(&run, 4096).unwrap();
        // What is written once more says the same.
        let again = flow.restore(&saved).unwrap();
        assert_eq!(flow.save(&again, 4096).unwrap(), saved);
        let mut effects = Vec::new();
        for input in [Input::Enter, says("2"), Input::TimedOut, Input::Woken, says("Ana")] {
            let _ = flow.advance(&mut run, input, &shown, &mut effects);
            let _ = flow.save(&run, 4096);
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let flow = &*ORDER;
    let mut run = flow.start(0xfeed).unwrap();
    let mut effects = Vec::new();
    let mut seeds = Vec::new();
    for input in
        [Input::Enter, says("Ana"), says("x"), says("2"), says("Main Street 1"), Input::Woken]
    {
        let _ = flow.advance(&mut run, input, &shown, &mut effects);
        seeds.extend(flow.save(&run, 4096).ok().map(String::into_bytes));
        seeds.extend(flow.save_unasked(&run, 4096).ok().map(String::into_bytes));
    }
    seeds.dedup();
    seeds
}
