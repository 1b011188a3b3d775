//! What a platform is answered.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::bot::Durability;
use botmesh_core::testing::{CrashPoints, CrashingStore};
use botmesh_core::{Bot, MemoryStore};
use botmesh_webhook::SettingsError;

use crate::client::{answer, ask, post, post_with};
use crate::platform::{Called, open, stage};

/// I6: success is told when the bot has the message, and a stranger is told nothing else.
#[tokio::test]
async fn a_message_is_taken_with_the_secret_and_only_with_it() {
    let mut stage = stage().await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("1 hello")).await.status, 200);
    for wrong in ["", "let-me-iN", "let-me-in2", "x"] {
        assert_eq!(ask(server, post_with(wrong, "2 stranger")).await.status, 401, "{wrong:?}");
    }
    let without = "POST /called HTTP/1.1\r\nHost: bot\r\nContent-Length: 3\r\n\r\n3 x";
    assert_eq!(ask(server, without).await.status, 401);
    assert_eq!(ask(server, post("4 again")).await.status, 200);
    assert_eq!(stage.handles(2).await, ["hello", "again"]);
}

/// A3: a platform that sends a message twice is told both times that it was taken.
#[tokio::test]
async fn a_repeated_message_is_taken_once_and_answered_twice() {
    let mut stage = stage().await;
    let server = stage.server.address();
    for _ in 0..2 {
        assert_eq!(ask(server, post("1 once")).await.status, 200);
    }
    assert_eq!(ask(server, post("2 after")).await.status, 200);
    assert_eq!(stage.handles(2).await, ["once", "after"]);
}

/// I6: a slow handler does not make the platform wait: it has only to be accepted.
#[tokio::test]
async fn the_answer_does_not_wait_for_the_handler() {
    let mut stage = stage().await;
    assert_eq!(ask(stage.server.address(), post("1 wait")).await.status, 200);
    assert!(stage.handled.borrow().is_empty());
    stage.gate.notify_one();
    assert_eq!(stage.handles(1).await, ["wait"]);
}

/// I6: a chat that is full is refused for now, and what was refused is taken when it comes again.
#[tokio::test]
async fn a_full_chat_tells_the_platform_to_come_again() {
    let mut stage = open(|bot| bot.max_waiting_per_chat(1), |limits| limits).await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("1 wait")).await.status, 200);
    let mut number = 2;
    let refused = loop {
        let answer = ask(server, post(&format!("{number} more"))).await;
        if answer.status != 200 {
            break answer;
        }
        number += 1;
        assert!(number < 10, "the chat is never full");
    };
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    stage.gate.notify_one();
    let before = stage.handles(number - 1).await.len();
    assert_eq!(before, number - 1, "what was refused was handled");
    assert_eq!(ask(server, post(&format!("{number} more"))).await.status, 200);
    stage.handles(number).await;
}

/// I6: a bot that is full altogether is waited for, but not for long.
#[tokio::test]
async fn a_full_bot_is_waited_for_and_then_refused() {
    let accept = Duration::from_millis(200);
    let mut stage = open(|bot| bot.max_in_work(1), |limits| limits.accept_time(accept)).await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("1 wait")).await.status, 200);
    let refused = ask(server, post("2 more")).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    stage.gate.notify_one();
    stage.handles(1).await;
    assert_eq!(ask(server, post("2 more")).await.status, 200);
    assert_eq!(stage.handles(2).await, ["wait", "more"], "a refused message was handled");
}

/// I6, G1: what cannot be stored just now is refused at once, and taken when it comes again.
#[tokio::test]
async fn a_store_that_is_away_tells_the_platform_to_come_again() {
    let points = CrashPoints::never();
    let store = CrashingStore::new(Arc::new(MemoryStore::new()), points.clone());
    let durable = |bot: Bot| bot.store(store).durability(Durability::inbox_and_outbox());
    let mut stage = open(durable, |limits| limits).await;
    let server = stage.server.address();
    points.fail(1000, 7);
    for _ in 0..4 {
        let refused = ask(server, post("1 hello")).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    }
    assert!(stage.handled.borrow().is_empty());
    points.fail(0, 7);
    assert_eq!(ask(server, post("1 hello")).await.status, 200);
    assert_eq!(ask(server, post("2 more")).await.status, 200);
    assert_eq!(stage.handles(2).await, ["hello", "more"]);
}

/// I6: more requests at a time than there may be are refused at once.
#[tokio::test]
async fn too_many_requests_at_a_time_are_told_to_come_again() {
    let stage = open(|bot| bot.max_in_work(1), |limits| limits.in_flight(1)).await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("1 wait")).await.status, 200);
    // This one waits for room in the bot and keeps the only place.
    let mut waiting = tokio::net::TcpStream::connect(server).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut waiting, post("2 more").as_bytes()).await.unwrap();
    let begun = std::time::Instant::now();
    loop {
        let next = ask(server, post("3 third")).await;
        assert_eq!(next.status, 503);
        if begun.elapsed() < Duration::from_secs(2) {
            break;
        }
    }
    stage.gate.notify_one();
    assert_eq!(answer(&mut waiting).await.unwrap().status, 200);
}

/// I6: a connection carries one request after the other.
#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let mut stage = stage().await;
    let mut stream = tokio::net::TcpStream::connect(stage.server.address()).await.unwrap();
    for number in 0..3 {
        let request = post(&format!("{number} m{number}"));
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.unwrap().status, 200);
    }
    assert_eq!(stage.handles(3).await, ["m0", "m1", "m2"]);
}

/// A14: two providers at one path are told before anything is served.
#[tokio::test]
async fn two_providers_at_one_path_are_an_error() {
    let bot = botmesh_core::Bot::new(Called::new()).provider(Called::named("other"));
    let bot = bot.start().await.unwrap();
    let made = botmesh_webhook::router(&bot.webhooks());
    assert_eq!(made.unwrap_err(), SettingsError::SamePath { path: "/called".to_owned() });
}

/// I6: the routes live in a router of the user's own.
#[tokio::test]
async fn the_router_is_mounted_in_another_one() {
    use botmesh_webhook::{Limits, Server};
    let stage = stage().await;
    let own = axum::Router::new()
        .route("/own", axum::routing::get(|| async { "mine" }))
        .nest("/bot", botmesh_webhook::router(&stage.bot.webhooks()).unwrap());
    let server = Server::of(own, Limits::default());
    let server = server.start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let own = ask(server.address(), "GET /own HTTP/1.1\r\nHost: bot\r\n\r\n").await;
    assert_eq!((own.status, own.body.as_str()), (200, "mine"));
    let nested = post("1 nested").replace("/called", "/bot/called");
    assert_eq!(ask(server.address(), nested).await.status, 200);
}
