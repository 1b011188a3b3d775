//! What a load balancer is answered.

use std::time::Duration;

use botmesh_core::MemoryStore;
use botmesh_core::bot::{Bot, Coordination};
use botmesh_core::provider::Capabilities;
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator, TestProvider};
use botmesh_webhook::{Server, ServerHandle, WebhookRouter};

use crate::client::{Answer, ask};
use crate::platform::stage;

async fn get(server: &ServerHandle, path: &str) -> Answer {
    ask(server.address(), format!("GET {path} HTTP/1.1\r\nHost: bot\r\n\r\n")).await
}

/// Waits until `/ready` says this.
async fn becomes(server: &ServerHandle, status: u16, word: &str) {
    let begun = std::time::Instant::now();
    loop {
        let answer = get(server, "/ready").await;
        if answer.status == status && answer.body.contains(&format!(r#""status":"{word}""#)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{word} was expected, not {answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// I6: a bot that serves says so, and one that stops sends nobody here any more.
#[tokio::test]
async fn ready_follows_the_bot_and_health_does_not() {
    let stage = stage().await;
    let ready = get(&stage.server, "/ready").await;
    assert_eq!(ready.status, 200);
    assert_eq!(
        ready.body,
        r#"{"status":"serving","providers":[{"id":"called","role":"shared","state":"open"}]}"#
    );
    assert_eq!(get(&stage.server, "/health").await.status, 200);
    stage.bot.stop().await;
    becomes(&stage.server, 503, "stopping").await;
    assert_eq!(get(&stage.server, "/health").await.status, 200);
}

/// E1, E3: leader, standby and a leader that is cut off are told apart.
#[tokio::test]
async fn leader_standby_and_degraded_are_told_apart() {
    let hub = MemoryCoordinationHub::new();
    let platform = TestProvider::new();
    let store = MemoryStore::new().as_shared();
    let mut able = Capabilities::default();
    able.exclusive_session = true;
    let mut servers = Vec::new();
    let mut bots = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..2 {
        let connection = platform.another_connection().with_capabilities(able);
        let bot = Bot::new(connection.clone())
            .store(store.clone())
            .coordination(Coordination::new(MemoryCoordinator::builder(&hub).build()));
        let bot = bot.start().await.unwrap();
        let server = Server::new(WebhookRouter::new(bot.webhooks())).unwrap();
        servers.push(server.start("127.0.0.1:0".parse().unwrap()).await.unwrap());
        bots.push(bot);
        connections.push(connection);
        if servers.len() == 1 {
            becomes(&servers[0], 200, "leader").await;
        }
    }
    becomes(&servers[1], 200, "standby").await;
    connections[0].interrupt();
    becomes(&servers[0], 503, "degraded").await;
    connections[0].restore();
    becomes(&servers[0], 200, "leader").await;
    bots.remove(0).stop().await;
    becomes(&servers[0], 503, "stopping").await;
    becomes(&servers[1], 200, "leader").await;
}

/// I6: with the feature, requests are counted where Prometheus looks.
#[cfg(feature = "metrics")]
#[tokio::test]
async fn requests_are_counted_at_metrics() {
    use crate::client::{post, post_with};
    let stage = stage().await;
    let server = stage.server.address();
    ask(server, post("1 hello")).await;
    ask(server, post_with("wrong", "2 hello")).await;
    let shown = get(&stage.server, "/metrics").await;
    assert_eq!(shown.status, 200);
    for status in ["200", "401"] {
        let line = format!(
            "botmesh_webhook_request_seconds_count{{provider=\"called\",status=\"{status}\"}} 1"
        );
        assert!(shown.body.contains(&line), "{line} is not in {}", shown.body);
    }
}
