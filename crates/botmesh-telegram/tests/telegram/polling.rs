//! Long polling: offsets, conflicts, failures.

use std::time::Duration;

use botmesh_core::Bot;
use botmesh_core::provider::ConnectionState;
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::{FakeTelegram, Fault};
use serde_json::json;

use crate::stage::Stage;

/// I1: a second poller makes one event and a capped back-off, and the transport counts as closed.
#[tokio::test]
async fn a_conflict_is_told_once_and_counts_as_closed() {
    let stage = Stage::polling().await;
    for _ in 0..3 {
        let words = "Conflict: terminated by other getUpdates request".to_owned();
        stage.platform.fails("getUpdates", Fault::Error(409, words, None));
    }
    stage.platform.private(42).says("first");
    stage.eventually("it is cut off", |it| it.is(ConnectionState::Connecting)).await;
    stage.eventually("it is back", |it| it.is(ConnectionState::Open)).await;
    let errors = stage.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("another process receives"), "{errors:?}");
    assert_eq!(stage.platform.private(42).hears(0).await.text(), "you said first");
}

/// I1: a webhook that is set is an error that says what to do, and is removed on request alone.
#[tokio::test]
async fn a_webhook_that_is_set_is_not_removed_unasked() {
    let platform = FakeTelegram::start().await.unwrap();
    let called = Telegram::webhook(FakeTelegram::TOKEN, "http://127.0.0.1:9");
    let called = Bot::new(called.api(platform.address()).build().unwrap()).start().await.unwrap();
    called.ready().await;
    called.stop().await;
    assert!(platform.webhook().is_some());
    let polling = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let stage = Stage::open(platform.clone(), polling.build().unwrap(), |bot| bot).await;
    assert!(stage.is(ConnectionState::Closed));
    assert!(stage.errors()[0].contains("delete_webhook"), "{:?}", stage.errors());
    assert!(platform.webhook().is_some());
    let polling = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let polling = polling.delete_webhook().build().unwrap();
    let stage = Stage::open(platform.clone(), polling, |bot| bot).await;
    assert!(stage.is(ConnectionState::Open));
    assert_eq!(platform.webhook(), None);
}

/// I1: a token that Telegram does not know ends the connection with an error of its own.
#[tokio::test]
async fn an_unknown_token_is_told_as_such() {
    let platform = FakeTelegram::start().await.unwrap();
    let telegram = Telegram::polling("1:nobody-knows-this").api(platform.address());
    let stage = Stage::open(platform, telegram.build().unwrap(), |bot| bot).await;
    assert!(stage.is(ConnectionState::Closed));
    let errors = stage.errors();
    assert!(errors[0].contains("refused the credentials"), "{errors:?}");
    assert!(!errors[0].contains("nobody-knows-this"));
}

/// I1, I7: whatever fails between, updates come after it, in order and once, one outage is one
/// event, and none shows the token.
#[tokio::test]
async fn updates_survive_every_failure_of_the_network() {
    let stage = Stage::polling().await;
    let ana = stage.platform.private(42);
    for (number, fault) in [
        Fault::Reset,
        Fault::bad_gateway(),
        Fault::TakenAndReset,
        Fault::Raw(200, b"{\"ok\":true,\"result\":[{\"update_".to_vec()),
        Fault::Slow(Duration::from_millis(300)),
    ]
    .into_iter()
    .enumerate()
    {
        stage.platform.fails("getUpdates", fault);
        ana.says(&format!("m{number}"));
    }
    let given = stage.is_given(5).await;
    let words: Vec<_> = given.iter().map(|message| message.body().unwrap()).collect();
    assert_eq!(words, ["m0", "m1", "m2", "m3", "m4"]);
    let errors = stage.errors();
    assert!(errors.len() <= 1, "one outage was told as {errors:?}");
    assert!(!errors.concat().contains("AAFakeToken"), "{errors:?}");
}

/// I1: an update that nobody can read is left out and told, and the next ones arrive.
#[tokio::test]
async fn an_unreadable_update_is_passed() {
    let stage = Stage::polling().await;
    let ana = stage.platform.private(42);
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    stage.platform.delivers(json!({ "message": deep }));
    ana.says("after it");
    assert_eq!(stage.is_given(1).await[0].body(), Some("after it"));
    stage.eventually("it is told", |it| !it.errors().is_empty()).await;
    assert!(stage.errors()[0].contains("cannot be read"), "{:?}", stage.errors());
    stage.eventually("it is confirmed", |it| it.platform.acknowledged() == 2).await;
}

/// I1: one bad update in an answer that cannot be read as a whole is found, left out and told.
#[tokio::test]
async fn a_malformed_answer_is_narrowed_down_to_one_update() {
    let stage = Stage::polling().await;
    let ana = stage.platform.private(42);
    let id = stage.platform.delivers(json!({ "message": { "text": "spoiled" } }));
    ana.says("after it");
    // As it comes each time that this update is asked for.
    let spoiled = format!("{{\"ok\":true,\"result\":[{{\"update_id\":{id},\"message\":\u{1}}}]}}");
    for _ in 0..4 {
        stage.platform.fails("getUpdates", Fault::Raw(200, spoiled.clone().into_bytes()));
    }
    stage.platform.cuts();
    let given = stage.is_given(1).await;
    assert!(given.iter().any(|message| message.body() == Some("after it")), "{given:?}");
}

/// I6: what was accepted right before a stop is not delivered to the next process.
#[tokio::test]
async fn a_stop_confirms_what_was_accepted() {
    let stage = Stage::polling().await;
    let ana = stage.platform.private(42);
    // The next question waits long: it is cut by the stop.
    ana.says("last");
    stage.is_given(1).await;
    assert_eq!(stage.bot.stop().await, 0);
    assert_eq!(stage.platform.acknowledged(), 1);
}

/// I6: a chat that is full delays no other chat, and keeps its order.
#[tokio::test]
async fn a_full_chat_delays_no_other() {
    let platform = FakeTelegram::start().await.unwrap();
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let stage = Stage::open(platform, telegram.build().unwrap(), |bot| {
        bot.max_waiting_per_chat(1).before(move |message| {
            let gate = std::sync::Arc::clone(&held);
            async move {
                if message.chat.chat() == "42" {
                    gate.acquire().await?.forget();
                }
                Ok(Some(message))
            }
        })
    })
    .await;
    let (ana, bo) = (stage.platform.private(42), stage.platform.private(43));
    for number in 0..6 {
        ana.says(&format!("m{number}"));
    }
    bo.says("hello");
    assert_eq!(bo.hears(0).await.text(), "you said hello");
    gate.add_permits(100);
    let given = stage.is_given(7).await;
    let of_ana = given.iter().filter(|message| message.chat.chat() == "42");
    let words: Vec<_> = of_ana.map(|message| message.body().unwrap()).collect();
    assert_eq!(words, ["m0", "m1", "m2", "m3", "m4", "m5"]);
}

/// I1: two pollers without coordination push each other out: each is told, and neither floods. This
/// is what the counter of overlaps sees, which stays at zero with coordination.
#[tokio::test]
async fn two_pollers_without_coordination_are_noticed() {
    let stage = Stage::polling().await;
    let other = Telegram::polling(FakeTelegram::TOKEN).api(stage.platform.address());
    let other = Stage::open(stage.platform.clone(), other.build().unwrap(), |bot| bot).await;
    stage.eventually("one of them is told", |it| !it.errors().is_empty()).await;
    assert!(stage.platform.overlaps() > 0);
    for told in [stage.errors(), other.errors()] {
        assert!(told.len() <= 1, "a conflict was told as {told:?}");
        assert!(told.iter().all(|error| error.contains("another process receives")), "{told:?}");
    }
}
