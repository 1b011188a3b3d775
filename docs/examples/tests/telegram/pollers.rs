//! One poller at a time, whatever happens to it.

use std::time::{Duration, Instant};

use botmesh_telegram::testing::{FakeChat, FakeTelegram};

use crate::process::{Replica, redis};

type Settings = [(&'static str, String); 2];

fn start(platform: &FakeTelegram, settings: &Settings) -> Replica {
    let all: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    Replica::start("telegram", platform, &all)
}

/// The bot answers this within the time.
async fn answers(chat: &FakeChat, within: Duration) -> Duration {
    let before = chat.heard().len();
    let begun = Instant::now();
    chat.says("/start");
    let heard = tokio::time::timeout(within, chat.hears(before)).await;
    assert!(heard.is_ok(), "no answer within {within:?}");
    begun.elapsed()
}

/// E1, E5: `kill -9` of the poller: another takes its place, and never do two ask at once.
#[tokio::test]
async fn a_killed_poller_is_replaced_and_never_are_there_two() {
    let Some(settings) = redis("killed") else { return };
    let platform = FakeTelegram::start().await.unwrap();
    let ana = platform.private(42);
    let first = start(&platform, &settings);
    answers(&ana, Duration::from_secs(20)).await;
    let _second = start(&platform, &settings);
    first.dies().await;
    answers(&ana, Duration::from_secs(19)).await;
    assert_eq!(platform.overlaps(), 0, "two pollers asked at once");
}

/// E1, C6: a poller that stands still is replaced, and when it goes on it asks no more.
#[tokio::test]
async fn a_frozen_poller_is_replaced_and_asks_no_more() {
    let Some(settings) = redis("frozen") else { return };
    let platform = FakeTelegram::start().await.unwrap();
    let ana = platform.private(42);
    let first = start(&platform, &settings);
    answers(&ana, Duration::from_secs(20)).await;
    let _second = start(&platform, &settings);
    // Its question stays open at Telegram as long as it was meant to.
    first.freezes(true);
    tokio::time::sleep(Duration::from_secs(8)).await;
    answers(&ana, Duration::from_secs(19)).await;
    first.freezes(false);
    for _ in 0..3 {
        answers(&ana, Duration::from_secs(19)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(platform.overlaps(), 0, "two pollers asked at once");
}

/// E1, E5: a rolling restart hands the connection over, and nobody waits for long.
#[tokio::test]
async fn a_rolling_restart_never_makes_two_pollers() {
    let Some(settings) = redis("rolling") else { return };
    let platform = FakeTelegram::start().await.unwrap();
    let ana = platform.private(42);
    let mut running = start(&platform, &settings);
    answers(&ana, Duration::from_secs(20)).await;
    for _ in 0..3 {
        let next = start(&platform, &settings);
        // It stands by from here on.
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::mem::replace(&mut running, next).stops().await;
        answers(&ana, Duration::from_secs(19)).await;
    }
    assert_eq!(ana.heard().len(), 4, "an answer came twice or not at all");
    assert_eq!(platform.overlaps(), 0, "two pollers asked at once");
}
