//! What a bot accepts is processed, and what it did is not done again.

mod deduplication;
mod exploring;
mod failing;
mod joined;
mod recovering;
mod sends;
mod waking;

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::bot::Durability;
use botmesh_core::prelude::*;
use botmesh_core::testing::World;
use botmesh_core::{Flow, flow};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const LEASE: Duration = Duration::from_secs(15);

/// What handlers have noted, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Names {
    names: Vec<String>,
}

/// Asks for three names and says them.
fn three_names() -> Flow<Names> {
    flow("names")
        .enter_on("go")
        .label("again")
        .ask_with(
            |s: &Names| format!("Name {}?", s.names.len() + 1),
            |s, answer| {
                s.names.push(answer.text()?);
                Ok(())
            },
        )
        .branch(|s| s.names.len() < 3, "again")
        .say(|s| s.names.join(", "))
        .persistent()
}

fn durable(bot: Bot) -> Bot {
    bot.durability(Durability::inbox_and_outbox())
}

/// G1, G3: a bot with durability does what one without does, and leaves nothing pending.
#[tokio::test(start_paused = true)]
async fn a_conversation_goes_its_way_and_leaves_nothing_behind() {
    let mut world = World::new(|bot| durable(bot).flow(three_names())).await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("Name 1?");
    ana.says("Ana").await.hears("Name 2?");
    ana.says("Bea").await.hears("Name 3?");
    ana.says("Cleo").await.hears("Ana, Bea, Cleo").hears_nothing();
    world.crash();
    world.restart().await;
    world.advance(LEASE * 2).await;
    ana.hears_nothing();
    ana.says("go").await.hears("Name 1?").hears_nothing();
    assert_eq!(world.errors(), Vec::<String>::new());
}

/// G3, A7: a conversation that waits is where it was after a crash.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_waits_survives_a_crash() {
    let mut world = World::new(|bot| durable(bot).flow(three_names())).await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("Name 1?");
    ana.says("Ana").await.hears("Name 2?");
    world.crash();
    world.restart().await;
    ana.says("Bea").await.hears("Name 3?");
    ana.says("Cleo").await.hears("Ana, Bea, Cleo").hears_nothing();
}

/// A1, G2: the messages of a chat are processed in the order in which they were accepted.
#[tokio::test(start_paused = true)]
async fn messages_that_come_at_once_keep_their_order() {
    let log = Log::default();
    let noted = log.clone();
    let world = World::new(move |bot| {
        let log = noted.clone();
        durable(bot).fallback(move |ctx| {
            let log = log.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(7)).await;
                log.note(ctx.text());
                Ok(())
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    let texts: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    ana.says_at_once(texts.clone()).await;
    assert_eq!(log.take(), texts);
}

/// G9: a process that is alone asks the store twice for a message: to take it in, and to end it with
/// its checkpoint.
#[tokio::test(start_paused = true)]
async fn one_process_asks_the_store_twice_for_a_message() {
    use botmesh_core::MemoryStore;
    use botmesh_core::testing::{CrashPoints, CrashingStore, TestProvider};
    let (platform, points) = (TestProvider::new(), CrashPoints::never());
    let store = CrashingStore::new(Arc::new(MemoryStore::new()), points.clone());
    let bot = durable(Bot::new(platform.clone()).store(store)).flow(three_names());
    let running = bot.start().await.unwrap();
    let ana = platform.chat("ana");
    let mut calls = Vec::new();
    for text in ["go", "Ana", "Bea", "Cleo"] {
        let before = points.passed();
        platform.says(&ana, text).await.unwrap();
        running.idle().await;
        // A point before and one after each call.
        calls.push((points.passed() - before) / 2);
    }
    // The first message of a chat looks for a checkpoint as well.
    assert_eq!(calls, [3, 2, 2, 2]);
}

/// A14: settings that contradict each other, and a store that forgets, are told by `build`.
#[tokio::test(start_paused = true)]
async fn settings_that_make_no_sense_are_told_by_build() {
    use botmesh_core::testing::TestProvider;
    let wrong = Durability::inbox_and_outbox().attempts(0).lease(Duration::ZERO);
    let bot = Bot::new(TestProvider::new()).durability(wrong);
    let error = bot.build().err().unwrap().to_string();
    assert!(error.contains("Durability::attempts") && error.contains("Durability::lease"));
    let bot = Bot::new(TestProvider::new()).durability(Durability::inbox_and_outbox());
    let warnings: Vec<String> =
        bot.build().unwrap().warnings().iter().map(ToString::to_string).collect();
    assert!(warnings[0].contains("forgets everything"), "{warnings:?}");
}
