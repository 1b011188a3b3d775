//! Ordered stop, providers that end, and what is reported.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::MemoryStore;
use botmesh_core::bot::{Coordination, Durability};
use botmesh_core::prelude::*;
use botmesh_core::provider::{ConnectionState, ProviderError};
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator, TestProvider, World};
use tokio::sync::Notify;

/// A9: what was accepted before a stop is handled, what comes after is refused.
#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_was_accepted_and_takes_nothing_more() {
    let platform = TestProvider::new();
    let running = Bot::new(platform.clone())
        .fallback(|ctx| async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            ctx.reply(format!("did {}", ctx.text())).await
        })
        .start()
        .await
        .unwrap();
    running.ready().await;
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    platform.says(&chat, "one").await.unwrap();
    platform.says(&chat, "two").await.unwrap();
    let stopping = tokio::spawn(running.stop());
    tokio::task::yield_now().await;
    assert!(platform.says(&chat, "three").await.is_err());
    assert_eq!(stopping.await.unwrap(), 0);
    assert_eq!(hears.next_message().await.text, "did one");
    assert_eq!(hears.next_message().await.text, "did two");
    assert!(hears.try_next().is_none());
    assert!(!platform.is_connected());
}

/// A9: a stop is bounded, and says what it had to leave.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_ever_and_says_what_is_left() {
    let mut world = World::new(|bot| {
        bot.stop_timeout(Duration::from_secs(5))
            .fallback(|_| async move { std::future::pending::<Result<(), BotError>>().await })
    })
    .await;
    let platform = world.platform().clone();
    platform.says(&platform.chat("ana"), "one").await.unwrap();
    platform.says(&platform.chat("ana"), "two").await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(world.stop().await, 2);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

/// A9: dropping a running bot ends its handlers where they stand.
#[tokio::test(start_paused = true)]
async fn a_dropped_bot_sends_nothing_more() {
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let mut world = World::new(move |bot| {
        let gate = Arc::clone(&held);
        bot.fallback(move |ctx| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                ctx.reply("too late").await
            }
        })
    })
    .await;
    let platform = world.platform().clone();
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    platform.says(&chat, "hi").await.unwrap();
    world.crash();
    gate.notify_waiters();
    gate.notify_one();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(hears.try_next().is_none());
}

/// A9: a bot runs until its providers have ended, and answers everything before it ends.
#[tokio::test(start_paused = true)]
async fn a_bot_ends_by_itself_when_its_providers_have_ended() {
    let platform = TestProvider::new();
    let bot = Bot::new(platform.clone()).fallback(|ctx| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ctx.reply("answered").await
    });
    let running = tokio::spawn(bot.run());
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    platform.says(&chat, "hi").await.unwrap();
    platform.end();
    running.await.unwrap().unwrap();
    assert_eq!(hears.next_message().await.text, "answered");
}

/// A4: a provider that fails is connected again after a while, and each failure is an event.
#[tokio::test(start_paused = true)]
async fn a_closed_connection_is_an_event() {
    let mut world = World::new(|bot| bot).await;
    world.platform().close("logged out");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = world.events();
    assert!(events.iter().any(|event| matches!(event, Event::Error(error)
        if error.error.downcast_ref::<ProviderError>().is_some())));
    assert!(events.iter().any(|event| matches!(event, Event::Connection { state, .. }
        if *state == ConnectionState::Closed)));
}

/// A2: without conversations and coordination no background task runs: nothing wakes the process.
#[tokio::test(start_paused = true)]
async fn an_idle_bot_sets_no_timers() {
    let world = World::new(|bot| bot.fallback(|ctx| async move { ctx.reply("hi").await })).await;
    world.user("ana").says("hi").await.hears("hi");
    let metrics = tokio::runtime::Handle::current().metrics();
    // The provider's session and the task that reports its connection.
    assert_eq!(metrics.num_alive_tasks(), 2);
}

/// A9: once a bot has stopped nothing keeps its store open, whatever its providers keep.
#[tokio::test(start_paused = true)]
async fn a_bot_that_has_stopped_lets_go_of_its_store() {
    let alive = Arc::new(());
    let gone = Arc::downgrade(&alive);
    let hub = MemoryCoordinationHub::new();
    let platform = TestProvider::new();
    let coordinator = MemoryCoordinator::builder(&hub).build();
    // A hook lives as long as the runtime, and so does what it holds.
    let running = Bot::new(platform.clone())
        .durability(Durability::inbox_and_outbox())
        .coordination(Coordination::new(coordinator))
        .store(MemoryStore::new().as_shared())
        .before(move |message| {
            let _alive = Arc::clone(&alive);
            async move { Ok(Some(message)) }
        })
        .fallback(|ctx| async move { ctx.reply("hello").await })
        .start()
        .await
        .unwrap();
    running.ready().await;
    let chat = platform.chat("ana");
    platform.says(&chat, "hi").await.unwrap();
    running.idle().await;
    assert_eq!(running.stop().await, 0);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(gone.upgrade().is_none(), "the runtime is kept by the provider {platform:?}");
}
