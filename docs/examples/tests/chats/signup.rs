use std::time::Duration;

use botmesh_core::testing::World;

#[path = "../../signup.rs"]
#[allow(dead_code, reason = "its main is for the terminal")]
mod example;

use example::signup;

#[tokio::test(start_paused = true)]
async fn a_signup_from_the_first_word_to_the_last() {
    let world = World::new(signup).await;
    let mut ana = world.user("ana");
    ana.says("hello").await.hears("Say /signup to begin.");
    ana.says("/signup").await.hears("What is your name?");
    ana.says(" Ana ").await.hears("How old are you?");
    ana.says("x").await.hears("Please give your age as a number.");
    ana.says("36").await.hears("Nice to meet you, Ana (36).");
    ana.says("hello").await.hears("Say /signup to begin.").hears_nothing();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_do_is_told_why() {
    let world = World::new(signup).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    ana.says("/signup").await.hears("Your name first, please; or say: cancel.");
    ana.says("A".repeat(61)).await.hears("That is long. What do your friends call you?");
    ana.says("A".repeat(1024 * 1024)).await.hears("That is long. What do your friends call you?");
    ana.says("Ana").await.hears("How old are you?");
    for age in ["-1", "256"] {
        ana.says(age).await.hears("Please give your age as a number.");
    }
    ana.says("3.5").await;
    assert!(ana.hears_something().text.starts_with("That did not work out"));
    ana.says("36").await.hears("Say /signup to begin.");
}

#[tokio::test(start_paused = true)]
async fn a_minor_is_turned_away() {
    let world = World::new(signup).await;
    let mut tim = world.user("tim");
    tim.says("/signup").await.hears("What is your name?");
    tim.says("Tim").await.hears("How old are you?");
    tim.says("9").await.hears("See you when you are 18, Tim.").hears_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_word_and_silence_both_end_a_signup() {
    let world = World::new(signup).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    ana.says("Cancel").await.hears("All right, cancelled.");
    ana.says("/signup").await.hears("What is your name?");
    ana.says("Ana").await.hears("How old are you?");
    world.advance(Duration::from_secs(3600)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    ana.says("36").await.hears("Say /signup to begin.");
}

/// A7: the example goes on at the same question, whenever it crashes.
#[tokio::test(start_paused = true)]
async fn a_signup_survives_a_crash_at_each_of_its_questions() {
    let mut world = World::new(signup).await;
    let mut ana = world.user("ana");
    ana.says("/signup").await.hears("What is your name?");
    world.restart().await;
    ana.says("Ana").await.hears("How old are you?");
    world.restart().await;
    ana.says("x").await.hears("Please give your age as a number.");
    world.restart().await;
    ana.says("36").await.hears("Nice to meet you, Ana (36).").hears_nothing();
}
