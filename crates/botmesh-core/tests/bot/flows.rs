//! Flows, as the runtime drives them.

use std::time::Duration;

use botmesh_core::prelude::*;
use botmesh_core::testing::World;
use botmesh_core::{Flow, flow};

#[derive(Default)]
struct Signup {
    name: String,
    age: u8,
}

fn signup() -> Flow<Signup> {
    flow("signup")
        .enter_on(command("signup"))
        .ask("What is your name?", |s: &mut Signup, answer| {
            s.name = answer.text()?;
            Ok(())
        })
        .ask(question("How old are you?").retry(3, "A number, please."), |s, answer| {
            s.age = answer.parse()?;
            Ok(())
        })
        .ask("Which city?", |_, answer| answer.text().map(drop))
        .say(|s| format!("{} is {}.", s.name, s.age))
}

fn bot(bot: Bot) -> Bot {
    bot.flow(signup())
        .fallback(|ctx| async move { ctx.reply(format!("new: {}", ctx.text())).await })
}

/// A5: answers sent all at once fill the questions in order, and the rest are new messages.
#[tokio::test(start_paused = true)]
async fn of_twenty_messages_at_once_three_answer_and_the_rest_are_new_messages() {
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    let mut said: Vec<String> = vec!["Ana".into(), "36".into(), "Cali".into()];
    said.extend((4..=20).map(|number| number.to_string()));
    ana.says_at_once(said).await;
    ana.hears("How old are you?").hears("Which city?").hears("Ana is 36.");
    for number in 4..=20 {
        ana.hears(&format!("new: {number}"));
    }
    ana.hears_nothing();
}

/// A5: a wrong answer is told what is wanted and asked again.
#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again() {
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    ana.says("Ana").await.hears("How old are you?");
    ana.says("old").await.hears("A number, please.");
    ana.says("36").await.hears("Which city?");
}

/// A5: a step of asynchronous work asks several times, and the flow goes on with what it found.
#[tokio::test(start_paused = true)]
async fn a_step_of_work_may_ask_several_times() {
    #[derive(Default)]
    struct Sum {
        total: i64,
    }
    let world = World::new(|bot| {
        bot.flow(
            flow("sum")
                .enter_on("sum")
                .do_(|c| async move {
                    for _ in 0..2 {
                        let next: i64 = c.ask_for("next?", Answer::parse).await?;
                        c.update(|s: &mut Sum| s.total += next);
                    }
                    c.say("adding").await
                })
                .say(|s| format!("total {}", s.total)),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("sum").await.hears("next?");
    ana.says("20").await.hears("next?");
    ana.says("x").await.hears("I did not understand that. Please try again.");
    ana.says("22").await.hears("adding").hears("total 42");
}

/// A5: a wait that lasts too long has its own action; silence before it is noticed.
#[tokio::test(start_paused = true)]
async fn silence_is_noticed_and_a_timeout_has_its_own_action() {
    let world = World::new(|bot| {
        bot.flow(
            flow::<()>("slow")
                .enter_on("go")
                .timeout(Duration::from_secs(60))
                .idle(Duration::from_secs(20), "Still there?")
                .on_timeout("gone")
                .ask("yes?", |_, _| Ok(()))
                .end_with("thanks")
                .label("gone")
                .say(|_| "bye"),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("yes?");
    world.advance(Duration::from_secs(20)).await;
    ana.hears("Still there?");
    world.advance(Duration::from_secs(39)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    ana.hears("bye");
    ana.says("go").await.hears("yes?");
    ana.says("yes").await.hears("thanks");
    world.advance(Duration::from_secs(600)).await;
    ana.hears_nothing();
}

/// A5: a short sleep keeps the chat, so that answers typed ahead are not lost; a long pause
/// leaves it free.
#[tokio::test(start_paused = true)]
async fn a_sleep_holds_the_chat_and_a_pause_does_not() {
    let world = World::new(|bot| {
        bot.flow(
            flow::<()>("pace")
                .enter_on("go")
                .say(|_| "one")
                .sleep(Duration::from_secs(2))
                .ask("two?", |_, _| Ok(()))
                .resume_after(Duration::from_secs(3600))
                .say(|_| "three"),
        )
        .fallback(|ctx| async move { ctx.reply("free").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says_at_once(["go", "typed ahead"]).await.hears("one").hears("two?").hears_nothing();
    ana.says("meanwhile").await.hears("free");
    world.advance(Duration::from_secs(3600)).await;
    ana.hears("three");
}

/// A5: entering another conversation replaces the one that waits.
#[tokio::test(start_paused = true)]
async fn a_handler_can_enter_a_flow_by_name() {
    let world = World::new(|bot| {
        bot.when("join", enter("signup"))
            .when("odd", |ctx| async move { ctx.enter("nowhere") })
            .flow(signup())
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("join").await.hears("What is your name?");
}

/// A5: what the user does to the flow's messages, such as a reaction, answers nothing.
#[tokio::test(start_paused = true)]
async fn a_reaction_is_no_answer() {
    use botmesh_core::message::Reaction;
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    let message = botmesh_core::MessageId::new("1").unwrap();
    ana.sends(Content::Reaction(Reaction { message, emoji: Some("👍".into()) }))
        .await
        .hears_nothing();
    ana.says("Ana").await.hears("How old are you?");
}

/// A4, A5: a validator that panics is an event, and the chat goes on.
#[tokio::test(start_paused = true)]
async fn a_panicking_validator_ends_the_flow_with_an_event() {
    let mut world = World::new(|bot| {
        bot.flow(flow::<()>("odd").enter_on("go").ask("yes?", |_, answer| {
            assert!(answer.text().is_err(), "not this");
            Ok(())
        }))
        .fallback(|ctx| async move { ctx.reply("free").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("yes?");
    ana.says("boom").await.hears_nothing();
    ana.says("after").await.hears("free");
    let errors = world.errors();
    assert!(
        errors[0].contains("the conversation odd") && errors[0].contains("not this"),
        "{errors:?}"
    );
}

/// A4, A5: a platform that refuses a question ends the flow with an event, and the chat goes on.
#[tokio::test(start_paused = true)]
async fn a_refused_send_is_an_event_and_does_not_block_the_chat() {
    use botmesh_core::provider::ProviderError;
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    let provider = botmesh_core::ProviderId::new("test").unwrap();
    let gone = ProviderError::Rejected { provider, reason: "too odd".to_owned() };
    world.platform().fail_next_send(gone);
    ana.says("Ana").await.hears_nothing();
    let errors = world.errors();
    assert!(errors[0].contains("too odd"), "{errors:?}");
    ana.says("hello").await.hears("new: hello");
}

/// A5: a question that did not reach the platform is asked with the next message, which answers
/// it.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_not_delivered_is_asked_with_the_next_message() {
    use botmesh_core::provider::ProviderError;
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    let provider = botmesh_core::ProviderId::new("test").unwrap();
    let source = "connection reset".into();
    world.platform().fail_next_send(ProviderError::Unreachable { provider, source });
    ana.says("Ana").await.hears_nothing();
    assert_eq!(world.errors().len(), 1);
    ana.says("36").await.hears("How old are you?").hears("Which city?");
}
