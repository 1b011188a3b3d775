//! What survives a crash.

use std::time::Duration;

use botmesh_core::prelude::*;
use botmesh_core::store::{CheckpointStore, CheckpointWrite};
use botmesh_core::testing::World;
use botmesh_core::{Fence, Flow, flow};
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
struct Signup {
    name: String,
    age: u8,
}

fn signup() -> Flow<Signup> {
    flow("signup")
        .enter_on(command("signup"))
        .timeout(Duration::from_secs(60))
        .ask("What is your name?", |s: &mut Signup, answer| {
            s.name = answer.text()?;
            Ok(())
        })
        .ask("How old are you?", |s, answer| {
            s.age = answer.parse()?;
            Ok(())
        })
        .say(|s| format!("{} is {}.", s.name, s.age))
        .persistent()
}

fn bot(bot: Bot) -> Bot {
    bot.flow(signup())
        .fallback(|ctx| async move { ctx.reply(format!("new: {}", ctx.text())).await })
}

/// A7, A11: a persistent flow goes on at the same question after a crash, at every question.
#[tokio::test(start_paused = true)]
async fn a_persistent_flow_goes_on_at_the_same_question_after_a_crash() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    world.crash();
    world.restart().await;
    ana.says("Ana").await.hears("How old are you?");
    world.crash();
    world.restart().await;
    ana.hears_nothing();
    ana.says("36").await.hears("Ana is 36.");
    world.restart().await;
    ana.says("hello").await.hears("new: hello");
}

/// A7: after an ordered stop as well.
#[tokio::test(start_paused = true)]
async fn a_persistent_flow_goes_on_after_a_stop() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    assert_eq!(world.stop().await, 0);
    world.restart().await;
    ana.says("Ana").await.hears("How old are you?");
}

/// A7: a flow that is not persistent is gone, and its messages are new ones.
#[tokio::test(start_paused = true)]
async fn a_flow_in_memory_is_gone_after_a_crash() {
    let mut world = World::new(|bot| {
        bot.flow(flow::<()>("brief").enter_on("go").ask("yes?", |_, _| Ok(())))
            .fallback(|ctx| async move { ctx.reply("new").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("yes?");
    world.crash();
    world.restart().await;
    ana.says("yes").await.hears("new");
}

/// A7: a crash after the answer was taken and before the next question was sent asks that
/// question; the next message is never taken for the answer to the question before.
#[tokio::test(start_paused = true)]
async fn a_crash_before_a_question_is_sent_asks_it_afterwards() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    world.platform().delay_sends(Duration::from_secs(10));
    let platform = world.platform().clone();
    platform.says(ana.chat(), "Ana").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.crash();
    world.platform().delay_sends(Duration::ZERO);
    ana.hears_nothing();
    world.restart().await;
    ana.says("36").await.hears("How old are you?").hears("Ana is 36.");
}

/// A7: the time of a wait goes on while the bot is down, and is kept when nobody writes.
#[tokio::test(start_paused = true)]
async fn a_timeout_keeps_its_moment_over_a_crash() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.crash();
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.restart().await;
    world.advance(Duration::from_secs(19)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    ana.says("Ana").await.hears("new: Ana");
}

/// A7: what a dead process had on its way to the store arrives after its successor has looked there,
/// and is woken in time all the same.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_arrives_after_the_start_is_woken() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    let (store, chat) = (world.store().clone(), world.platform().chat("ana"));
    let body = store.load_checkpoint(&chat).await.unwrap().unwrap().body;
    store.clear_checkpoint(&chat).await.unwrap();
    world.crash();
    world.restart().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let wake_in = Some(Duration::from_secs(2));
    let write = CheckpointWrite { body: &body, wake_in, expires_in: None };
    store.set_checkpoint(&chat, write, Fence::new(1)).await.unwrap();
    world.advance(Duration::from_secs(6)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
}

/// A7: a wait that ran out while the bot was down ends before the next message is handled.
#[tokio::test(start_paused = true)]
async fn a_timeout_that_passed_during_the_downtime_comes_first() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    world.crash();
    tokio::time::sleep(Duration::from_secs(61)).await;
    world.restart().await;
    ana.says("Ana").await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    ana.hears("new: Ana").hears_nothing();
}

/// A7: a pause goes on over a crash.
#[tokio::test(start_paused = true)]
async fn a_pause_ends_at_its_moment_over_a_crash() {
    let mut world = World::new(|bot| {
        bot.flow(
            flow::<()>("later")
                .enter_on("go")
                .resume_after(Duration::from_secs(3600))
                .say(|_| "it is time")
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears_nothing();
    world.crash();
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.restart().await;
    world.advance(Duration::from_secs(2999)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    ana.hears("it is time");
}

/// A7: a state that no longer parses, a flow that has changed and one that is gone never lock a
/// chat out: an event tells it, and the message is handled as a new one.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_cannot_be_read_is_an_event_and_locks_nobody_out() {
    let mut world = World::new(bot).await;
    for (number, body) in
        ["not json", r#"{"flow":"gone"}"#, r#"{"flow":"signup","fingerprint":"0"}"#, ""]
            .into_iter()
            .enumerate()
    {
        let mut user = world.user(&format!("user-{number}"));
        let write = CheckpointWrite { body, wake_in: None, expires_in: None };
        world.store().set_checkpoint(user.chat(), write, Fence::new(1)).await.unwrap();
        user.says("hello").await.hears("new: hello");
        let events = world.events();
        let given_up = events.iter().filter(|it| matches!(it, Event::Unrestorable { .. })).count();
        assert_eq!(given_up, 1, "{events:?}");
        user.says("/signup").await.hears("What is your name?");
        user.says("Ana").await.hears("How old are you?");
    }
}

/// A7: a bot whose clock was set back can still write what an earlier process has written.
#[tokio::test(start_paused = true)]
async fn a_higher_fence_of_an_earlier_process_does_not_lock_the_chat() {
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    let write = CheckpointWrite { body: "{}", wake_in: None, expires_in: None };
    let far = Fence::new(u64::MAX / 2);
    world.store().set_checkpoint(ana.chat(), write, far).await.unwrap();
    ana.says("/signup").await.hears("What is your name?");
    ana.says("Ana").await.hears("How old are you?");
    ana.says("36").await.hears("Ana is 36.");
}

/// A7: a step of work goes on with the answer to its first question.
#[tokio::test(start_paused = true)]
async fn a_step_of_work_takes_the_answer_to_its_first_question_after_a_crash() {
    let mut world = World::new(|bot| {
        bot.flow(
            flow::<String>("work")
                .enter_on("go")
                .do_(|c| async move {
                    let first = c.ask("first?").await?.text()?;
                    let second = c.ask("second?").await?.text()?;
                    c.update(|s: &mut String| *s = format!("{first} {second}"));
                    Ok(())
                })
                .say(|s| s.clone())
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("first?");
    world.restart().await;
    ana.says("one").await.hears("second?");
    world.restart().await;
    ana.says("two").await.hears("one two");
}

/// A7: fifty steps with a crash after each: no question twice, no answer lost.
#[tokio::test(start_paused = true)]
async fn a_long_flow_with_a_crash_after_every_answer_loses_and_repeats_nothing() {
    let mut world = World::new(|bot| {
        bot.flow(
            flow::<Vec<String>>("long")
                .enter_on("go")
                .label("again")
                .ask_with(
                    |s| format!("{}?", s.len()),
                    |s, answer| {
                        s.push(answer.text()?);
                        Ok(())
                    },
                )
                .branch(|s| s.len() < 50, "again")
                .say(|s| s.join(" "))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await;
    for number in 0..50 {
        ana.hears(&format!("{number}?")).hears_nothing();
        world.crash();
        world.restart().await;
        ana.says(format!("a{number}")).await;
    }
    let all: Vec<String> = (0..50).map(|number| format!("a{number}")).collect();
    ana.hears(&all.join(" "));
}

/// A7: a crash during a step of work does not lose the answers before it, and the step begins
/// again.
#[tokio::test(start_paused = true)]
async fn a_crash_during_a_step_of_work_loses_no_answer_before_it() {
    let mut world = World::new(|bot| {
        bot.flow(
            flow::<String>("work")
                .enter_on("go")
                .ask("name?", |s: &mut String, answer| {
                    *s = answer.text()?;
                    Ok(())
                })
                .do_(|c| async move {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    c.say("worked").await
                })
                .say(|s| format!("bye {s}"))
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("name?");
    world.platform().says(ana.chat(), "Ana").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.crash();
    world.restart().await;
    ana.says("hello?").await.hears("worked").hears("bye Ana");
}

/// A7: a sleep that a crash cut goes on by itself.
#[tokio::test(start_paused = true)]
async fn a_sleep_that_a_crash_cut_goes_on_by_itself() {
    let mut world = World::new(|bot| {
        bot.flow(
            flow::<()>("pace")
                .enter_on("go")
                .sleep(Duration::from_secs(30))
                .say(|_| "awake")
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    world.platform().says(ana.chat(), "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.crash();
    world.restart().await;
    world.advance(Duration::from_secs(60)).await;
    ana.hears("awake").hears_nothing();
}
