//! What `build()` finds.

use std::time::Duration;

use botmesh_core::prelude::*;
use botmesh_core::testing::TestProvider;
use botmesh_core::{BuildError, flow};

fn bot() -> Bot {
    Bot::new(TestProvider::new())
}

fn wrong(bot: Bot) -> BuildError {
    bot.build().map(drop).unwrap_err()
}

/// A14: everything that is wrong is told at once, with the setting and a remedy.
#[test]
fn all_mistakes_are_told_at_once_with_the_setting_and_a_remedy() {
    let error = wrong(
        bot()
            .provider(TestProvider::new())
            .max_in_work(0)
            .max_waiting_per_chat(0)
            .conversation_timeout(Duration::ZERO)
            .when(pattern("("), |_| async move { Ok(()) })
            .conversation("same", |_| async move { Ok(()) })
            .conversation("same", |_| async move { Ok(()) })
            .conversation("", |_| async move { Ok(()) })
            .flow(flow::<()>("lost").ask("?", |_, _| Ok(())).goto("nowhere")),
    );
    let text = error.to_string();
    for part in [
        "two providers have the id \"test\"",
        "Bot::max_in_work: 0 lets no message in",
        "Bot::conversation_timeout",
        "Bot::when(",
        "another flow or conversation has this name",
        "a conversation name is empty",
        "leads to the label \"nowhere\"",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert_eq!(error.problems().len(), 7, "{text}");
}

/// A14: a sleep that would hold a chat too long, a step that is never reached and a persistent
/// flow with a sub-flow in memory are told before the first message.
#[test]
fn mistakes_in_flows_are_told_before_the_first_message() {
    let long = flow::<()>("long").sleep(Duration::from_secs(3600)).say(|_| "late");
    assert!(wrong(bot().flow(long)).to_string().contains("long"));
    let dead = flow::<()>("dead").end().say(|_| "never");
    assert!(wrong(bot().flow(dead)).to_string().contains("never reached"));
}

/// A14, A15: a handler for a platform that the bot does not have is a warning.
#[test]
fn a_handler_for_an_absent_platform_is_a_warning() {
    let built =
        bot().when(command("go").only_on("telegram"), |_| async move { Ok(()) }).build().unwrap();
    let warnings = built.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().contains("no provider \"telegram\""));
}

/// A14: a store that is not ready is told at start.
#[tokio::test]
async fn an_empty_bot_starts_and_stops() {
    let running = bot().start().await.unwrap();
    assert_eq!(running.stop().await, 0);
}
