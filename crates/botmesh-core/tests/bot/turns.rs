//! What a turn holds back, and what is worth nothing without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use botmesh_core::bot::Coordination;
use botmesh_core::coordination::LossReason;
use botmesh_core::provider::SendError;
use botmesh_core::store::{CheckpointStore, CheckpointWrite, MemoryStore};
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator, TestProvider, World};
use botmesh_core::{Bot, Fence, Flow, flow};
use tokio::sync::mpsc;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settling(after: Duration) -> impl Fn(Coordination) -> Coordination {
    move |coordination| coordination.settle(after)
}

/// D2, D6: a flow of three questions alternates between two replicas for more than fifty steps:
/// no question comes twice, and each answer is in its place.
#[tokio::test(start_paused = true)]
async fn three_questions_alternate_between_replicas_without_a_repetition() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Vec<String>>("three")
                .enter_on("go")
                .ask("one?", |s: &mut Vec<String>, a| a.text().map(|it| s.push(it)))
                .ask("two?", |s, a| a.text().map(|it| s.push(it)))
                .ask("three?", |s, a| a.text().map(|it| s.push(it)))
                .say(|s| s.join(" "))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    let mut steps = 0;
    for round in 0..17 {
        let answers: Vec<_> = (0..3).map(|number| format!("{round}.{number}")).collect();
        let expected = ["one?", "two?", "three?", &answers.join(" ")];
        let said = std::iter::once("go").chain(answers.iter().map(String::as_str));
        for (text, heard) in said.zip(expected) {
            steps += 1;
            ana.on(steps % 2).says(text).await.hears(heard).hears_nothing();
        }
    }
    assert!(steps > 50);
}

/// D2: a message at another replica waits until the step has ended and the flow waits again, also
/// where the flow goes on elsewhere by a label.
#[tokio::test(start_paused = true)]
async fn a_message_at_another_replica_waits_until_the_flow_waits_again() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Vec<String>>("work")
                .enter_on("go")
                .label("again")
                .ask("what?", |s: &mut Vec<String>, a| a.text().map(|it| s.push(it)))
                .do_(|c| async move {
                    tokio::time::sleep(seconds(10)).await;
                    c.say("done").await
                })
                .branch(|s| s.len() < 3, "again")
                .say(|s| s.join(" "))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("what?");
    for (replica, text) in [(0, "a"), (1, "b"), (0, "c")] {
        world.connection(replica).says(ana.chat(), text).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.advance(seconds(31)).await;
    for heard in ["done", "what?", "done", "what?", "done", "a b c"] {
        ana.hears(heard);
    }
    ana.hears_nothing();
}

fn slow_first_run(runs: &Arc<AtomicUsize>) -> Flow<String> {
    let runs = Arc::clone(runs);
    flow::<String>("slow")
        .enter_on("go")
        .ask("name?", |s: &mut String, answer| {
            *s = answer.text()?;
            Ok(())
        })
        .do_(move |c| {
            let runs = Arc::clone(&runs);
            async move {
                if runs.fetch_add(1, Ordering::SeqCst) == 0 {
                    tokio::time::sleep(seconds(60)).await;
                    c.say("from the first run").await?;
                }
                c.ask("really?").await?;
                tokio::time::sleep(seconds(4)).await;
                Ok(())
            }
        })
        .say(|s| format!("bye {s}"))
        .persistent()
}

/// D3: a step that was cut never acts again, also when the same replica takes the chat again and
/// runs the step anew; what it writes is not undone.
#[tokio::test(start_paused = true)]
async fn a_step_that_was_cut_never_acts_beside_its_own_repetition() {
    let runs = Arc::new(AtomicUsize::new(0));
    let mut world = World::coordinated(TestProvider::new(), 2, settling(seconds(5)), move |bot| {
        bot.flow(slow_first_run(&runs))
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("name?");
    ana.says("Ana").await.hears_nothing();
    // The message that wakes it is read as the answer to the step's question.
    ana.says("yes").await.hears("really?").hears("bye Ana");
    world.advance(seconds(120)).await;
    ana.hears_nothing();
    assert!(world.store().load_checkpoint(ana.chat()).await.unwrap().is_none());
    assert_eq!(world.errors(), [""; 0]);
}

/// D3, A14: a sleep that `settle` would cut each time is told when the bot is built.
#[tokio::test]
async fn a_sleep_longer_than_settle_is_told_when_the_bot_is_built() {
    let hub = MemoryCoordinationHub::new();
    let coordination = Coordination::new(MemoryCoordinator::builder(&hub).build());
    let bot = Bot::new(TestProvider::new())
        .store(MemoryStore::new().as_shared())
        .coordination(coordination.settle(seconds(5)))
        .flow(flow::<()>("nap").enter_on("go").sleep(seconds(20)).say_text("here I am"));
    let error = bot.build().map(drop).unwrap_err().to_string();
    assert!(error.contains("use resume_after, or raise settle"), "{error}");
}

/// C6: what a handler keeps of a turn whose lease was lost refuses to send, with the reason.
#[tokio::test(start_paused = true)]
async fn a_send_after_the_lease_is_lost_is_refused_with_the_reason() {
    let (outcome, mut outcomes) = mpsc::unbounded_channel();
    let world = World::replicas(2, move |bot| {
        let outcome = outcome.clone();
        bot.fallback(move |ctx| {
            let outcome = outcome.clone();
            async move {
                let kept = ctx.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(seconds(20)).await;
                    outcome.send(kept.reply("too late").await)
                });
                tokio::time::sleep(seconds(40)).await;
                Ok(())
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    world.connection(0).says(ana.chat(), "hi").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.coordinator(0).faults().freeze();
    let refused = outcomes.recv().await.unwrap().unwrap_err();
    let Some(SendError::LeaseLost(lost)) = refused.downcast_ref() else { panic!("{refused:?}") };
    assert_eq!(lost.reason, LossReason::Expired);
    ana.hears_nothing();
}

/// D7: a replica whose clear is refused leaves the row of the new owner.
#[tokio::test(start_paused = true)]
async fn a_refused_clear_leaves_the_row_of_the_new_owner() {
    let mut world = World::replicas(2, |bot| {
        bot.flow(
            flow::<()>("one")
                .enter_on("go")
                .ask("one?", |_, _| Ok(()))
                .say_text("thanks")
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    let write = CheckpointWrite { body: "{}", wake_in: None, expires_in: None };
    let later = Fence::new(u64::MAX / 4);
    world.store().set_checkpoint(ana.chat(), write, later).await.unwrap();
    ana.on(0).says("1").await;
    let stored = world.store().load_checkpoint(ana.chat()).await.unwrap().unwrap();
    assert_eq!((stored.body.as_str(), stored.fence), ("{}", later));
    assert!(format!("{:?}", world.events()).contains("Superseded"));
}

/// D6: a replica that dies between the checkpoint and its question: the next one asks it.
#[tokio::test(start_paused = true)]
async fn a_question_that_its_replica_died_before_asking_is_asked_by_the_next() {
    let mut world = World::replicas(2, |bot| {
        bot.flow(
            flow::<String>("name")
                .enter_on("go")
                .ask("name?", |s: &mut String, answer| {
                    *s = answer.text()?;
                    Ok(())
                })
                .say(|s| format!("hello {s}"))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    world.connection(0).delay_sends(seconds(5));
    world.connection(0).says(ana.chat(), "go").await.unwrap();
    tokio::time::sleep(seconds(1)).await;
    world.crash_replica(0);
    world.advance(seconds(16)).await;
    ana.hears_nothing();
    ana.on(1).says("Ana").await.hears("name?").hears("hello Ana");
}

/// A3: what one replica has seen is not known to another. A message that a platform delivers again
/// to another replica is handled again.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_delivered_again_to_another_replica_is_handled_again() {
    let world = World::replicas(2, |bot| {
        bot.fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
    })
    .await;
    let mut ana = world.user("ana");
    let message = world.connection(0).says(ana.chat(), "hi").await.unwrap();
    world.advance(seconds(1)).await;
    ana.hears("hi");
    world.connection(0).deliver(message.clone()).await.unwrap();
    world.advance(seconds(1)).await;
    ana.hears_nothing();
    world.connection(1).deliver(message).await.unwrap();
    world.advance(seconds(1)).await;
    ana.hears("hi");
}

/// C4: a message that waits for its turn at a replica which dies is lost with it, and holds nobody
/// up.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_at_a_replica_that_dies_holds_nobody_up() {
    let mut world = World::replicas(2, |bot| {
        bot.when("slow", |ctx| async move {
            tokio::time::sleep(seconds(30)).await;
            ctx.reply("done").await
        })
        .fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
    })
    .await;
    let mut ana = world.user("ana");
    for (replica, text) in [(1, "slow"), (0, "lost"), (1, "kept")] {
        world.connection(replica).says(ana.chat(), text).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.crash_replica(0);
    world.advance(seconds(31)).await;
    ana.hears("done").hears("kept");
    world.advance(seconds(120)).await;
    ana.hears_nothing();
}
