//! How long and how far a conversation is forwarded, and with what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use botmesh_core::bot::{Coordination, Fallback, Handover, HandoverReason};
use botmesh_core::prelude::*;
use botmesh_core::store::CheckpointStore;
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::{Flow, flow, question};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn two(first: impl Into<botmesh_core::Question> + 'static) -> Flow<Vec<String>> {
    flow("two")
        .enter_on("go")
        .ask(first, |s: &mut Vec<String>, a| a.text().map(|it| s.push(it)))
        .ask("two?", |s, a| a.text().map(|it| s.push(it)))
        .say(|s| s.join(" "))
        .forwardable()
}

async fn forwarding(handover: Handover, define: impl Fn(Bot) -> Bot + 'static) -> World {
    let coordinate = move |it: Coordination| it.handover(handover.clone());
    let define = move |bot: Bot| {
        define(bot).fallback(|ctx| async move { ctx.reply(format!("new: {}", ctx.text())).await })
    };
    World::coordinated(TestProvider::new(), 2, coordinate, define).await
}

/// Whether a replica still takes the first answer when so much time has passed.
async fn lasts(world: World, wait: Duration) -> bool {
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    tokio::time::sleep(wait).await;
    match &*ana.on(1).says("a").await.hears_something().text {
        "two?" => true,
        "new: a" => false,
        other => panic!("heard {other:?}"),
    }
}

/// F1: without anything set a forwarded checkpoint expires after five minutes.
#[tokio::test(start_paused = true)]
async fn a_forwarded_checkpoint_lasts_five_minutes_by_default() {
    for (wait, expected) in [(299, true), (301, false)] {
        let world = forwarding(Handover::forward(), |bot| bot.flow(two("one?"))).await;
        assert_eq!(lasts(world, seconds(wait)).await, expected, "{wait} s");
    }
}

/// F1: where conversations have a timeout, it lasts as long; the timeout ends it at that moment.
#[tokio::test(start_paused = true)]
async fn a_forwarded_checkpoint_lasts_as_long_as_conversations_wait() {
    let define = |bot: Bot| bot.conversation_timeout(seconds(900)).flow(two("one?"));
    let world = forwarding(Handover::forward(), define).await;
    assert!(lasts(world, seconds(899)).await);
}

/// F1: while a flow waits, its checkpoint never expires before the timeout of that wait.
#[tokio::test(start_paused = true)]
async fn a_forwarded_checkpoint_never_expires_before_its_wait() {
    let define = |bot: Bot| bot.flow(two(question("one?").timeout(seconds(600))));
    let world = forwarding(Handover::forward().ttl(seconds(30)), define).await;
    assert!(lasts(world, seconds(599)).await);
}

/// F1: each wait refreshes the time to live.
#[tokio::test(start_paused = true)]
async fn each_wait_refreshes_the_time_to_live() {
    let define = |bot: Bot| bot.flow(two("one?"));
    let world = forwarding(Handover::forward().ttl(seconds(30)), define).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    tokio::time::sleep(seconds(20)).await;
    ana.on(0).says("a").await.hears("two?");
    tokio::time::sleep(seconds(20)).await;
    ana.on(1).says("b").await.hears("a b");
}

/// F6: a flow that is not persistent is lost by default, and the message is a new one.
#[tokio::test(start_paused = true)]
async fn a_flow_in_memory_is_lost_by_default() {
    let world = forwarding(Handover::new(), |bot| bot.flow(two("one?"))).await;
    assert!(!lasts(world, seconds(1)).await);
}

/// F4: after an ordered stop of the replica that had it, another one goes on.
#[tokio::test(start_paused = true)]
async fn another_replica_goes_on_after_an_ordered_stop() {
    let mut world = forwarding(Handover::forward(), |bot| bot.flow(two("one?"))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    world.stop_replica(0).await;
    ana.on(1).says("a").await.hears("two?");
    ana.on(1).says("b").await.hears("a b");
}

/// F2: the fallback is told that the flow has changed.
#[tokio::test(start_paused = true)]
async fn the_fallback_is_told_that_the_flow_has_changed() {
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let told = Fallback::call(|info, ctx| async move {
        assert_eq!((info.name.as_str(), info.reason), ("two", HandoverReason::Changed));
        ctx.reply("it has changed").await?;
        Ok(true)
    });
    let mut world = forwarding(Handover::forward().fallback(told), move |bot| {
        let flow = two("one?");
        bot.flow(if now.load(Ordering::SeqCst) { flow.say_text("more") } else { flow })
    })
    .await;
    changed.store(true, Ordering::SeqCst);
    world.restart_replica(1).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("a").await.hears("it has changed");
}

/// F6: a conversation in memory costs one write when it first waits and one when it has ended.
#[tokio::test(start_paused = true)]
async fn a_stub_is_written_once() {
    let world = forwarding(Handover::new().fallback(Fallback::Notify), |bot| {
        bot.when("order", enter("order")).conversation("order", |c| async move {
            c.ask("what?").await?;
            c.ask("how many?").await?;
            c.ask("when?").await?;
            c.say("thanks").await
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    let first = world.store().load_checkpoint(ana.chat()).await.unwrap().unwrap();
    ana.says("tea").await.hears("how many?");
    ana.says("two").await.hears("when?");
    let last = world.store().load_checkpoint(ana.chat()).await.unwrap().unwrap();
    assert_eq!(first.revision, last.revision);
    ana.says("now").await.hears("thanks");
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_none());
}

/// F6: a conversation that is cut before it first waits leaves no stub: there is nothing to hand
/// over yet.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_never_waited_leaves_no_stub() {
    let mut world = forwarding(Handover::new().fallback(Fallback::Notify), |bot| {
        bot.when("order", enter("order")).conversation("order", |c| async move {
            tokio::time::sleep(seconds(10)).await;
            c.ask("what?").await.map(drop)
        })
    })
    .await;
    let mut ana = world.user("ana");
    world.connection(0).says(ana.chat(), "order").await.unwrap();
    tokio::time::sleep(seconds(5)).await;
    world.crash_replica(0);
    world.advance(seconds(16)).await;
    ana.on(1).says("tea").await.hears("new: tea");
}

/// A bot whose step is cut by `settle` after its first answer, the first time.
async fn cut_after_an_answer(handover: Handover, hooks: &Arc<AtomicUsize>) -> World {
    let (runs, hooks) = (Arc::new(AtomicUsize::new(0)), Arc::clone(hooks));
    let coordinate = move |it: Coordination| it.settle(seconds(5)).handover(handover.clone());
    World::coordinated(TestProvider::new(), 2, coordinate, move |bot| {
        let (runs, hooks) = (Arc::clone(&runs), Arc::clone(&hooks));
        bot.before(move |mut message| {
            hooks.fetch_add(1, Ordering::SeqCst);
            if let botmesh_core::message::Content::Text(text) = &mut message.content {
                text.push('!');
            }
            async move { Ok(Some(message)) }
        })
        .flow(
            flow::<String>("work")
                .enter_on("go!")
                .do_(move |c| {
                    let runs = Arc::clone(&runs);
                    async move {
                        let first = c.ask("first?").await?.text()?;
                        if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                            tokio::time::sleep(seconds(60)).await;
                        }
                        let second = c.ask("second?").await?.text()?;
                        c.update(|s: &mut String| *s = format!("{first} {second}"));
                        Ok(())
                    }
                })
                .say(|s| s.clone())
                .persistent(),
        )
    })
    .await
}

/// F7: what the hooks made of a kept answer travels with it, and they do not run over it again.
#[tokio::test(start_paused = true)]
async fn a_kept_answer_is_what_the_hooks_made_of_it() {
    let hooks = Arc::new(AtomicUsize::new(0));
    let world = cut_after_an_answer(Handover::new(), &hooks).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("first?");
    ana.on(0).says("one").await.hears_nothing();
    ana.on(1).says("two").await.hears("second?").hears("one! two!");
    assert_eq!(hooks.load(Ordering::SeqCst), 3, "one for each message");
}

/// F7: an answer that is too large to be kept is asked for again.
#[tokio::test(start_paused = true)]
async fn an_answer_too_large_to_be_kept_is_asked_for_again() {
    let hooks = Arc::default();
    let world = cut_after_an_answer(Handover::new().max_answer_bytes(1000), &hooks).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("first?");
    ana.on(0).says("x".repeat(2000)).await.hears_nothing();
    ana.on(1).says("hello?").await.hears("first?").hears_nothing();
    ana.on(1).says("one").await.hears("second?");
    ana.on(0).says("two").await;
    assert!(!ana.hears_something().text.is_empty());
}
