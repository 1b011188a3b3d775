//! Asynchronous conversations.

use std::time::Duration;

use botmesh_core::conversation::ConversationEnded;
use botmesh_core::prelude::*;
use botmesh_core::testing::World;

fn order(bot: Bot) -> Bot {
    bot.when(command("order"), enter("order"))
        .conversation("order", |c| async move {
            let item = c.ask("What would you like?").await?.text()?;
            let count: u32 = c
                .ask_for(
                    question("How many?").buttons(["1", "2"]).retry(2, "A number, please."),
                    Answer::parse,
                )
                .await?;
            c.run("place", || async { Ok::<_, BotError>(()) }).await?;
            c.say(format!("{count} x {item}")).await
        })
        .cancellable()
        .conversation_timeout(Duration::from_secs(60))
        .fallback(|ctx| async move { ctx.reply("fallback").await })
}

/// A6: an asynchronous function asks and goes on with the answers.
#[tokio::test(start_paused = true)]
async fn a_function_awaits_answers() {
    let world = World::new(order).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.says("tea").await.hears("How many?");
    ana.presses("2").await.hears("2 x tea");
    ana.says("tea").await.hears("fallback");
}

/// A6: conversations of different chats do not meet.
#[tokio::test(start_paused = true)]
async fn each_chat_has_its_own_conversation() {
    let world = World::new(order).await;
    let (mut ana, mut bob) = (world.user("ana"), world.user("bob"));
    ana.says("/order").await.hears("What would you like?");
    bob.says("/order").await.hears("What would you like?");
    ana.says("tea").await.hears("How many?");
    bob.says("milk").await.hears("How many?");
    ana.says("1").await.hears("1 x tea");
    bob.says("2").await.hears("2 x milk");
}

/// A6: a wrong answer is asked again, and too many end the conversation.
#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again_and_too_many_end_it() {
    let mut world = World::new(order).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.says("tea").await.hears("How many?");
    ana.says("lots").await.hears("A number, please.");
    ana.says("many").await;
    assert!(ana.hears_something().text.starts_with("That did not work out"));
    ana.says("1").await.hears("fallback");
    assert!(world.errors().is_empty());
}

/// A6: nobody answers: the conversation ends at its time and says so.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_in_time_ends_the_conversation() {
    let world = World::new(order).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    world.advance(Duration::from_secs(59)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    ana.says("tea").await.hears("fallback");
}

/// A5: a cancel word ends the conversation, in the language of the chat.
#[tokio::test(start_paused = true)]
async fn a_cancel_word_ends_the_conversation() {
    let world = World::new(order).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.says("Cancel").await.hears("All right, cancelled.");
    ana.says("tea").await.hears("fallback");
}

/// A6: a button of an earlier question, or one that was pressed before, has expired.
#[tokio::test(start_paused = true)]
async fn a_button_that_was_pressed_before_has_expired() {
    let world = World::new(order).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.says("tea").await.hears("How many?");
    ana.presses("1").await.hears("1 x tea");
    ana.presses("1").await.hears("This button no longer works.");
    ana.says("/order").await.hears("What would you like?");
    ana.presses("1").await.hears("This button no longer works.");
    ana.says("milk").await.hears("How many?");
}

/// A6: a function that rests does not hold its chat.
#[tokio::test(start_paused = true)]
async fn a_resting_function_leaves_the_chat_to_other_handlers() {
    let world = World::new(|bot| {
        bot.when("remind", enter("remind"))
            .conversation("remind", |c| async move {
                c.say("in an hour").await?;
                c.resume_after(Duration::from_secs(3600)).await?;
                c.say("it is time").await
            })
            .fallback(|ctx| async move { ctx.reply("fallback").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("remind").await.hears("in an hour");
    world.advance(Duration::from_secs(3000)).await;
    ana.says("hello").await.hears("fallback");
    world.advance(Duration::from_secs(599)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    ana.hears("it is time");
}

/// A6, A4: an error and a panic of the function are events with the name of the conversation.
#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_in_a_function_is_an_event_and_ends_it() {
    let mut world = World::new(|bot| {
        bot.when("go", enter("odd"))
            .conversation("odd", |c| async move {
                let answer = c.ask("fail or panic?").await?.text()?;
                assert_ne!(answer, "panic");
                Err::<(), _>(BotError::message("no stock"))
            })
            .fallback(|ctx| async move { ctx.reply("fallback").await })
    })
    .await;
    let mut ana = world.user("ana");
    for answer in ["fail", "panic"] {
        ana.says("go").await.hears("fail or panic?");
        ana.says(answer).await.hears_nothing();
        ana.says("after").await.hears("fallback");
    }
    let errors = world.errors();
    assert_eq!(errors[0], "the conversation odd: no stock");
    assert!(errors[1].starts_with("the conversation odd: user code panicked"), "{errors:?}");
}

/// A6: the function can handle its own ending.
#[tokio::test(start_paused = true)]
async fn a_function_may_catch_the_end_of_its_wait() {
    let world = World::new(|bot| {
        bot.when("go", enter("patient")).conversation("patient", |c| async move {
            let asked = c.ask(question("yes?").timeout(Duration::from_secs(5))).await;
            match asked {
                Err(error) if error.is::<ConversationEnded>() => c.say("never mind").await,
                Err(error) => Err(error),
                Ok(_) => c.say("thanks").await,
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("yes?");
    world.advance(Duration::from_secs(5)).await;
    ana.hears("never mind");
}

/// A6: two calls at once are an error that says so, not a mix-up of answers.
#[tokio::test(start_paused = true)]
async fn overlapping_questions_are_refused() {
    let mut world = World::new(|bot| {
        bot.when("go", enter("both"))
            .conversation("both", |c| async move { tokio::try_join!(c.ask("one?"), c.ask("two?")) })
    })
    .await;
    world.user("ana").says("go").await;
    let errors = world.errors();
    assert!(errors[0].contains("one thing at a time"), "{errors:?}");
}

/// A6: what is stored for the user can be read and changed from within.
#[tokio::test(start_paused = true)]
async fn a_function_keeps_user_data() {
    let world = World::new(|bot| {
        bot.when("name", enter("name"))
            .conversation("name", |c| async move {
                let name = c.ask("name?").await?.text()?;
                c.update_user(|stored: &mut String| stored.clone_from(&name)).await
            })
            .fallback(|ctx| async move { ctx.reply(ctx.user::<String>().await?).await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("name").await.hears("name?");
    ana.says("Ana").await;
    ana.says("who am I?").await.hears("Ana");
}
