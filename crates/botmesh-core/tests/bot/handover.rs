//! What becomes of a conversation when another replica takes its chat.

use std::time::Duration;

use botmesh_core::bot::{Coordination, Fallback, Handover, HandoverReason};
use botmesh_core::coordination::{CoordinatorEvent, HandoverOutcome};
use botmesh_core::prelude::*;
use botmesh_core::store::CheckpointStore;
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::{Flow, flow};

fn forwardable() -> Flow<Vec<String>> {
    flow("two")
        .enter_on("go")
        .ask("one?", |s: &mut Vec<String>, a| a.text().map(|text| s.push(text)))
        .ask("two?", |s, a| a.text().map(|text| s.push(text)))
        .say(|s| s.join(" "))
        .forwardable()
}

fn bot(bot: Bot) -> Bot {
    bot.flow(forwardable())
        .when("order", enter("order"))
        .conversation("order", |c| async move {
            let item = c.ask("what?").await?.text()?;
            c.say(format!("one {item}")).await
        })
        .fallback(|ctx| async move { ctx.reply(format!("new: {}", ctx.text())).await })
}

async fn world(handover: Handover) -> World {
    let coordinate = move |it: Coordination| it.handover(handover.clone());
    World::coordinated(TestProvider::new(), 2, coordinate, bot).await
}

fn outcomes(world: &mut World) -> Vec<HandoverOutcome> {
    let events = world.events().into_iter();
    let outcomes = events.filter_map(|event| match event {
        Event::Coordination(CoordinatorEvent::Handover { outcome, .. }) => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

/// F1, F9, C11: a forwarded flow goes on with another replica, which is an event.
#[tokio::test(start_paused = true)]
async fn a_forwarded_flow_goes_on_with_another_replica() {
    let mut world = world(Handover::forward()).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("a").await.hears("two?");
    ana.on(0).says("b").await.hears("a b");
    assert_eq!(outcomes(&mut world), [HandoverOutcome::Resumed; 2]);
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_none());
}

/// F1: its checkpoint expires after the time to live.
#[tokio::test(start_paused = true)]
async fn a_forwarded_checkpoint_expires() {
    let mut world = world(Handover::forward().ttl(Duration::from_secs(30))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    world.crash_replica(0);
    tokio::time::sleep(Duration::from_secs(31)).await;
    ana.on(1).says("a").await.hears("new: a");
}

/// F1, D7: only the stored copy expires: with the replica that has it in memory the conversation
/// goes on, and can be forwarded again.
#[tokio::test(start_paused = true)]
async fn a_conversation_outlives_its_forwarded_checkpoint_in_memory() {
    let mut world = world(Handover::forward().ttl(Duration::from_secs(30))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    tokio::time::sleep(Duration::from_secs(31)).await;
    ana.says("a").await.hears("two?");
    ana.on(1).says("b").await.hears("a b");
    ana.on(0).says("go").await.hears("one?");
    ana.says("a").await.hears("two?");
    tokio::time::sleep(Duration::from_secs(31)).await;
    ana.says("b").await.hears("a b");
    assert_eq!(world.errors(), [""; 0]);
}

/// F4: after an ordered stop the checkpoint stays, and the same replica can go on as well.
#[tokio::test(start_paused = true)]
async fn a_forwarded_flow_goes_on_after_an_ordered_stop() {
    let mut world = world(Handover::forward()).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    world.stop_replica(0).await;
    world.restart_replica(0).await;
    ana.on(0).says("a").await.hears("two?");
}

/// F6: without a fallback a conversation in memory is lost, and the message is a new one.
#[tokio::test(start_paused = true)]
async fn a_conversation_in_memory_is_lost_without_a_fallback() {
    let world = world(Handover::new()).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1).says("tea").await.hears("new: tea");
    // Nothing was left in the store, and the stale copy is gone.
    ana.on(0).says("tea").await.hears("new: tea");
}

/// F6: the user is told that the conversation was interrupted, and the message is consumed.
#[tokio::test(start_paused = true)]
async fn an_interrupted_conversation_is_told_to_the_user() {
    let mut world = world(Handover::new().fallback(Fallback::Notify)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1)
        .says("tea")
        .await
        .hears("Sorry, we were interrupted. Please start again.")
        .hears_nothing();
    assert_eq!(outcomes(&mut world), [HandoverOutcome::Notified]);
    ana.on(1).says("tea").await.hears("new: tea");
}

/// F6: a message of the bot's own may be told instead.
#[tokio::test(start_paused = true)]
async fn the_notice_can_be_the_bots_own() {
    let handover = Handover::new().fallback(Fallback::Notify).notify_message("Once more, please.");
    let world = world(handover).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1).says("tea").await.hears("Once more, please.");
}

/// F6: the conversation begins again from its start.
#[tokio::test(start_paused = true)]
async fn an_interrupted_conversation_can_begin_again() {
    let mut world = world(Handover::new().fallback(Fallback::Restart)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1).says("tea").await.hears("what?");
    ana.on(1).says("tea").await.hears("one tea");
    assert_eq!(outcomes(&mut world), [HandoverOutcome::Restarted]);
}

/// F6: a function of the user decides, and tells whether it has consumed the message.
#[tokio::test(start_paused = true)]
async fn a_function_decides_about_an_interrupted_conversation() {
    let decide = Fallback::call(|info, ctx| async move {
        assert_eq!(info.reason, HandoverReason::InMemory);
        if ctx.text() == "tea" {
            ctx.reply(format!("{} was cut", info.name)).await?;
            return Ok(true);
        }
        Ok(false)
    });
    let mut world = world(Handover::new().fallback(decide)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1).says("tea").await.hears("order was cut");
    ana.on(0).says("order").await.hears("what?");
    ana.on(1).says("milk").await.hears("new: milk");
    assert_eq!(outcomes(&mut world), [HandoverOutcome::Handled, HandoverOutcome::Dropped]);
}

/// F6: a conversation that ends leaves no stub behind.
#[tokio::test(start_paused = true)]
async fn a_conversation_that_ends_clears_its_stub() {
    let world = world(Handover::new().fallback(Fallback::Notify)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("order").await.hears("what?");
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_some());
    ana.on(0).says("tea").await.hears("one tea");
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_none());
    ana.on(1).says("x").await.hears("new: x");
}

/// F2: a replica with a changed flow does not resume it but applies the fallback.
#[tokio::test(start_paused = true)]
async fn a_changed_flow_is_not_resumed() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let changed = std::sync::Arc::new(AtomicBool::new(false));
    let now = std::sync::Arc::clone(&changed);
    let coordinate = |it: Coordination| it.handover(Handover::forward().fallback(Fallback::Notify));
    let mut world = World::coordinated(TestProvider::new(), 2, coordinate, move |bot| {
        let mut steps = flow::<Vec<String>>("two")
            .enter_on("go")
            .ask("one?", |s, a| a.text().map(|text| s.push(text)));
        if now.load(Ordering::Relaxed) {
            steps = steps.ask("new?", |s, a| a.text().map(|text| s.push(text)));
        }
        bot.flow(steps.say(|s| s.join(" ")).forwardable())
    })
    .await;
    changed.store(true, Ordering::Relaxed);
    world.restart_replica(1).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("a").await.hears("Sorry, we were interrupted. Please start again.");
    assert_eq!(outcomes(&mut world), [HandoverOutcome::Notified]);
}

/// F5: a replica that does not forward resumes a forwarded flow all the same, and clears it.
#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_forward_resumes_and_clears() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let made = AtomicUsize::new(0);
    let coordinate = move |it: Coordination| match made.fetch_add(1, Ordering::Relaxed) {
        0 => it.handover(Handover::forward()),
        _ => it,
    };
    let world = World::coordinated(TestProvider::new(), 2, coordinate, bot).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("a").await.hears("two?");
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_none());
    ana.on(1).says("b").await.hears("a b");
}

/// F7: a step that was cut keeps the answer to its first question: the replica that takes over
/// does not ask again, and keeps the message that woke it for the next question.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_cut_keeps_its_answer() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let runs = Arc::new(AtomicUsize::new(0));
    let world = World::coordinated(
        TestProvider::new(),
        2,
        |it| it.settle(Duration::from_secs(5)),
        move |bot| {
            let runs = Arc::clone(&runs);
            bot.flow(
                flow::<String>("work")
                    .enter_on("go")
                    .do_(move |c| {
                        let runs = Arc::clone(&runs);
                        async move {
                            let first = c.ask("first?").await?.text()?;
                            if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                                tokio::time::sleep(Duration::from_secs(60)).await;
                            }
                            let second = c.ask("second?").await?.text()?;
                            c.update(|s: &mut String| *s = format!("{first} {second}"));
                            Ok(())
                        }
                    })
                    .say(|s| s.clone())
                    .persistent(),
            )
        },
    )
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("first?");
    ana.on(0).says("one").await.hears_nothing();
    ana.on(1).says("two").await.hears("second?").hears("one two");
}

/// F3: a state that cannot be written as JSON is not forwarded, and goes to the fallback.
#[tokio::test(start_paused = true)]
async fn a_state_that_is_no_json_goes_to_the_fallback() {
    use std::collections::HashMap;
    let coordinate = |it: Coordination| it.handover(Handover::forward().fallback(Fallback::Notify));
    let mut world = World::coordinated(TestProvider::new(), 2, coordinate, |bot| {
        bot.flow(
            flow::<HashMap<(u8, u8), String>>("odd")
                .enter_on("go")
                .ask("one?", |s, a| a.text().map(|text| drop(s.insert((1, 2), text))))
                .ask("two?", |_, _| Ok(()))
                .say(|s| format!("{} kept", s.len()))
                .forwardable(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(0).says("a").await.hears("two?");
    ana.on(0).says("b").await.hears("1 kept");
    ana.on(0).says("go").await.hears("one?");
    ana.on(0).says("a").await.hears("two?");
    ana.on(1).says("b").await.hears("Sorry, we were interrupted. Please start again.");
    assert!(outcomes(&mut world).contains(&HandoverOutcome::Notified));
}

/// F8: answers to later questions of a step are not forwarded: the step begins again.
#[tokio::test(start_paused = true)]
async fn a_step_that_waits_at_a_later_question_begins_again() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<String>("work")
                .enter_on("go")
                .do_(|c| async move {
                    let mut answers = Vec::new();
                    for number in 1..=3 {
                        answers.push(c.ask(format!("{number}?")).await?.text()?);
                    }
                    c.update(|s: &mut String| *s = answers.join(" "));
                    Ok(())
                })
                .say(|s| s.clone())
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("1?");
    ana.on(0).says("a").await.hears("2?");
    ana.on(0).says("b").await.hears("3?");
    ana.on(1).says("lost").await.hears("1?");
    ana.on(1).says("a").await.hears("2?");
    ana.on(1).says("b").await.hears("3?");
    ana.on(1).says("c").await.hears("a b c");
}
