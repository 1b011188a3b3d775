//! Several replicas of one bot: turns across processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use botmesh_core::coordination::{CoordinationError, Coordinator};
use botmesh_core::prelude::*;
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::{Flow, flow};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Default, Serialize, Deserialize)]
struct Count {
    answers: Vec<String>,
}

fn fifty() -> Flow<Count> {
    flow("fifty")
        .enter_on("go")
        .label("again")
        .ask_with(
            |s: &Count| format!("{}?", s.answers.len()),
            |s, answer| {
                s.answers.push(answer.text()?);
                Ok(())
            },
        )
        .branch(|s| s.answers.len() < 50, "again")
        .say(|s| s.answers.join(" "))
        .persistent()
}

/// D6, D2: a persistent flow alternates between two replicas for fifty steps without a repeated
/// question or a stale answer; no replica sees it in the middle of a step.
#[tokio::test(start_paused = true)]
async fn a_persistent_flow_alternates_between_replicas_without_a_repeated_question() {
    let world = World::replicas(2, |bot| bot.flow(fifty())).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await;
    for number in 0..50 {
        ana.hears(&format!("{number}?")).hears_nothing();
        ana.on((number + 1) % 2).says(format!("a{number}")).await;
    }
    let all: Vec<String> = (0..50).map(|number| format!("a{number}")).collect();
    ana.hears(&all.join(" ")).hears_nothing();
}

/// C3, D1: messages of one chat at two replicas are handled one at a time and in the order in
/// which they arrived.
#[tokio::test(start_paused = true)]
async fn messages_at_two_replicas_keep_their_order_and_never_overlap() {
    let inside = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&inside);
    let world = World::replicas(2, move |bot| {
        let inside = Arc::clone(&shared);
        bot.fallback(move |ctx| {
            let inside = Arc::clone(&inside);
            async move {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two replicas at once");
                tokio::time::sleep(Duration::from_millis(30)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                ctx.reply(ctx.text().to_owned()).await
            }
        })
    })
    .await;
    let chat = world.platform().chat("ana");
    let mut hears = world.platform().listen(&chat);
    for number in 0..40 {
        world.connection(number % 2).says(&chat, number.to_string()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for number in 0..40 {
        assert_eq!(hears.next_message().await.text, number.to_string());
    }
}

/// A1: chats run in parallel across replicas as within one.
#[tokio::test(start_paused = true)]
async fn a_held_chat_delays_no_other_chat_on_any_replica() {
    let world = World::replicas(2, |bot| {
        bot.when("slow", |_| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Ok(())
        })
        .fallback(|ctx| async move { ctx.reply("quick").await })
    })
    .await;
    let platform = world.platform().clone();
    platform.says(&platform.chat("ana"), "slow").await.unwrap();
    for replica in [0, 1] {
        let chat = platform.chat(&format!("bob-{replica}"));
        let mut hears = platform.listen(&chat);
        world.connection(replica).says(&chat, "hi").await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(1), hears.next_message()).await;
        assert_eq!(heard.unwrap().text, "quick");
    }
}

/// C4, A7: after a crash in the middle of a step the other replica goes on from the checkpoint,
/// once the lease has ended.
#[tokio::test(start_paused = true)]
async fn a_signup_goes_on_when_its_replica_crashes() {
    let mut world = World::replicas(2, |bot| bot.flow(fifty())).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("0?");
    ana.on(0).says("a0").await.hears("1?");
    world.crash_replica(0);
    world.advance(Duration::from_secs(16)).await;
    ana.on(1).says("a1").await.hears("2?").hears_nothing();
}

/// C6, D5: a replica that was frozen for longer than its lease sends nothing more for the chat,
/// its copy is discarded, and the chat goes on with the other one.
#[tokio::test(start_paused = true)]
async fn a_frozen_replica_sends_nothing_after_its_lease() {
    let (reply, mut outcome) = mpsc::unbounded_channel();
    let mut world = World::replicas(2, move |bot| {
        let reply = reply.clone();
        bot.when("slow", move |ctx| {
            let reply = reply.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(40)).await;
                Ok(reply.send(ctx.reply("too late").await.map(drop))?)
            }
        })
        .fallback(|ctx| async move { ctx.reply("here").await })
    })
    .await;
    let chat = world.platform().chat("ana");
    let mut hears = world.platform().listen(&chat);
    world.connection(0).says(&chat, "slow").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.coordinator(0).faults().freeze();
    world.connection(1).says(&chat, "hello").await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(hears.next_message().await.text, "here");
    assert!(begun.elapsed() < Duration::from_secs(17), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(hears.try_next().is_none(), "the frozen replica wrote");
    // The work was dropped where it stood; had it gone on, its send would have been refused.
    assert!(outcome.try_recv().is_err());
    assert!(!world.events().is_empty());
}

/// D3: a step that runs longer than `settle` is stopped before the turn is released; it never
/// acts again, and its checkpoint is where the next replica goes on.
#[tokio::test(start_paused = true)]
async fn a_step_beyond_settle_is_stopped_and_never_acts_again() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut world = World::coordinated(
        TestProvider::new(),
        2,
        |coordination| coordination.settle(Duration::from_secs(5)),
        move |bot| {
            let runs = Arc::clone(&counted);
            bot.flow(
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
                                tokio::time::sleep(Duration::from_secs(60)).await;
                                c.say("from the first run").await?;
                            }
                            c.say("done").await
                        }
                    })
                    .say(|s| format!("bye {s}"))
                    .persistent(),
            )
        },
    )
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("name?");
    let begun = tokio::time::Instant::now();
    ana.on(0).says("Ana").await;
    assert_eq!(begun.elapsed().as_secs(), 5, "the step was not stopped at `settle`");
    assert!(format!("{:?}", world.events()).contains("Settled"));
    ana.on(1).says("hello?").await.hears("done").hears("bye Ana");
    world.advance(Duration::from_secs(120)).await;
    ana.hears_nothing();
}

/// D4: a message that waits longer than `turn_wait` for its turn is an error event.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_too_long_for_its_turn_is_an_error_event() {
    let mut world = World::coordinated(
        TestProvider::new(),
        2,
        |coordination| {
            coordination.turn_wait(Duration::from_secs(10)).settle(Duration::from_secs(5))
        },
        |bot| {
            bot.when("slow", |_| async move {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Ok(())
            })
            .fallback(|ctx| async move { ctx.reply("never").await })
        },
    )
    .await;
    let chat = world.platform().chat("ana");
    world.connection(0).says(&chat, "slow").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.connection(1).says(&chat, "hello").await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    let unavailable = world.events().into_iter().any(|event| match event {
        Event::Error(error) => error
            .error
            .downcast_ref::<CoordinationError>()
            .is_some_and(CoordinationError::is_unavailable),
        _ => false,
    });
    assert!(unavailable);
}

/// D5: a timer of a conversation acts only under the turn; the copy of a replica whose chat was
/// served elsewhere is discarded instead of writing to the user or deleting the checkpoint.
#[tokio::test(start_paused = true)]
async fn a_stale_copy_neither_writes_nor_clears() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Count>("two")
                .enter_on("go")
                .timeout(Duration::from_secs(60))
                .ask("one?", |_, _| Ok(()))
                .ask("two?", |_, _| Ok(()))
                .say(|_| "thanks")
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    tokio::time::sleep(Duration::from_secs(30)).await;
    ana.on(1).says("1").await.hears("two?");
    // The first replica's timer is due now, for a wait that is over.
    world.advance(Duration::from_secs(45)).await;
    ana.hears_nothing();
    ana.on(0).says("2").await.hears("thanks");
}

/// F12, D5: a wait's timeout keeps its original moment on the replica that takes over.
#[tokio::test(start_paused = true)]
async fn a_timeout_fires_once_and_at_its_moment_when_its_replica_has_died() {
    let mut world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Count>("two")
                .enter_on("go")
                .timeout(Duration::from_secs(600))
                .ask("one?", |_, _| Ok(()))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    tokio::time::sleep(Duration::from_secs(200)).await;
    world.crash_replica(0);
    world.advance(Duration::from_secs(395)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(10)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    world.advance(Duration::from_secs(1200)).await;
    ana.hears_nothing();
}

/// D7: a replica whose write is refused ends its conversation as a lost turn and leaves the row
/// of the new owner.
#[tokio::test(start_paused = true)]
async fn a_refused_write_is_a_lost_turn_and_leaves_the_row_of_the_new_owner() {
    use botmesh_core::Fence;
    use botmesh_core::store::{CheckpointStore, CheckpointWrite};
    let mut world = World::replicas(2, |bot| bot.flow(fifty())).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("0?");
    // Somebody with a higher fence has written, as a later holder would.
    let write = CheckpointWrite { body: "{}", wake_in: None, expires_in: None };
    let later = Fence::new(u64::MAX / 4);
    world.store().set_checkpoint(ana.chat(), write, later).await.unwrap();
    ana.on(0).says("a0").await.hears_nothing();
    let stored = world.store().load_checkpoint(ana.chat()).await.unwrap().unwrap();
    assert_eq!((stored.body.as_str(), stored.fence), ("{}", later));
    let events = format!("{:?}", world.events());
    assert!(events.contains("Superseded"), "{events}");
}

/// D9: in a group the turn is for one participant; two of them run in parallel.
#[tokio::test(start_paused = true)]
async fn participants_of_a_group_have_turns_of_their_own() {
    let world = World::replicas(2, |bot| {
        bot.when("slow", |_| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Ok(())
        })
        .fallback(|ctx| async move { ctx.reply("quick").await })
    })
    .await;
    let group = world.platform().chat("group");
    let (ana, bob) = (group.for_participant("ana").unwrap(), group.for_participant("bob").unwrap());
    let mut hears = world.platform().listen(&bob);
    world.connection(0).says(&ana, "slow").await.unwrap();
    world.connection(1).says(&bob, "hi").await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(1), hears.next_message()).await;
    assert_eq!(heard.unwrap().text, "quick");
}

/// A9, C10: an ordered stop releases the chats at once, and the other replica goes on.
#[tokio::test(start_paused = true)]
async fn a_stopped_replica_hands_its_chats_over_at_once() {
    let mut world = World::replicas(2, |bot| bot.flow(fifty())).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("0?");
    assert_eq!(world.stop_replica(0).await, 0);
    let begun = tokio::time::Instant::now();
    ana.on(1).says("a0").await.hears("1?");
    assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
}

/// A5: a burst at two replicas fills the questions in order, and the rest are new messages.
#[tokio::test(start_paused = true)]
async fn a_burst_at_two_replicas_fills_the_questions_in_order() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Count>("three")
                .enter_on("go")
                .ask("one?", |s, a| a.text().map(|text| s.answers.push(text)))
                .ask("two?", |s, a| a.text().map(|text| s.answers.push(text)))
                .ask("three?", |s, a| a.text().map(|text| s.answers.push(text)))
                .say(|s| s.answers.join(" "))
                .persistent(),
        )
        .fallback(|ctx| async move { ctx.reply(format!("new: {}", ctx.text())).await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    for number in 1..=20_usize {
        world.connection(number % 2).says(ana.chat(), number.to_string()).await.unwrap();
        tokio::task::yield_now().await;
    }
    world.advance(Duration::from_secs(1)).await;
    ana.hears("two?").hears("three?").hears("1 2 3");
    for number in 4..=20 {
        ana.hears(&format!("new: {number}"));
    }
}

/// A14, D8: contradictions of coordination are told when the bot is built.
#[tokio::test]
async fn contradictions_of_coordination_are_told_when_the_bot_is_built() {
    use botmesh_core::bot::Coordination;
    use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator};
    let hub = MemoryCoordinationHub::new();
    let coordination = Coordination::new(MemoryCoordinator::builder(&hub).build())
        .settle(Duration::from_secs(20))
        .turn_wait(Duration::from_secs(10));
    let error = Bot::new(TestProvider::new()).coordination(coordination).build().map(drop);
    let text = error.unwrap_err().to_string();
    assert!(text.contains("keep `settle` below `turn_wait`"), "{text}");
    assert!(text.contains("coordination needs a shared store: MemoryStore keeps"), "{text}");
}

/// C7: a coordinator that is away for a moment delays messages, and loses none.
#[tokio::test(start_paused = true)]
async fn a_backend_that_loses_replies_delays_messages_and_loses_none() {
    let world = World::replicas(2, |bot| {
        bot.fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
    })
    .await;
    let chat = world.platform().chat("ana");
    let mut hears = world.platform().listen(&chat);
    for number in 0..20_usize {
        world.coordinator(0).faults().lose_replies(1);
        world.coordinator(1).faults().lose_requests(1);
        world.connection(number % 2).says(&chat, number.to_string()).await.unwrap();
        assert_eq!(hears.next_message().await.text, number.to_string());
    }
}

/// C4, D4: a message whose place in the queue was lost with the session of its replica is handled
/// all the same, once the replica is back.
#[tokio::test(start_paused = true)]
async fn a_message_that_lost_its_place_is_handled_once_the_replica_is_back() {
    let world = World::replicas(2, |bot| {
        bot.when("slow", |_| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok(())
        })
        .fallback(|ctx| async move { ctx.reply("here").await })
    })
    .await;
    let chat = world.platform().chat("ana");
    let mut hears = world.platform().listen(&chat);
    world.connection(1).says(&chat, "slow").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.connection(0).says(&chat, "hello").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.coordinator(0).faults().freeze();
    tokio::time::sleep(Duration::from_secs(40)).await;
    world.coordinator(0).faults().thaw();
    let heard = tokio::time::timeout(Duration::from_secs(30), hears.next_message()).await;
    assert_eq!(heard.unwrap().text, "here");
}

/// C8, D6: a turn that was granted to a replica and never used does not make current what the
/// replica remembers of the chat from before.
#[tokio::test(start_paused = true)]
async fn a_turn_that_was_never_used_makes_no_memory_current() {
    let world = World::replicas(2, |bot| bot.flow(fifty())).await;
    let mut ana = world.user("ana");
    // The first replica learns that the chat has no conversation, and the second one begins one.
    ana.on(0).says("hello").await;
    ana.on(1).says("go").await.hears("0?");
    let ticket = Coordinator::reserve(world.coordinator(0), ana.chat()).await.unwrap();
    drop(ticket);
    tokio::time::sleep(Duration::from_millis(1)).await;
    ana.on(0).says("a0").await.hears("1?").hears_nothing();
}
