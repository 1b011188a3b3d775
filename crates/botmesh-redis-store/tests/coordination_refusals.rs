//! What a coordinator tells at its start when the server does not fit.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::coordination::{CoordinationError, Coordinator as _};
use botmesh_redis_store::{RedisCoordinator, RedisStore, RedisStoreBuilder};
use botmesh_test_support::replica::{LEASE, take};
use support::PrivateServer;
use support::replica::replica_with;

/// Why a coordinator does not start. Nothing that it says may hold the password of these tests.
async fn refusal(store: RedisStoreBuilder) -> String {
    let coordinator = replica_with(store, LEASE);
    let text = match coordinator.start().await {
        Err(error @ CoordinationError::Unfit { .. }) => format!("{error} {error:?}"),
        other => panic!("not refused: {other:?}"),
    };
    let text = format!("{text} {coordinator:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(coordinator.reserve(&botmesh_test_support::replica::chat("k")).await.is_err());
    text
}

/// C12: the default layout on a cluster is refused at the start with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_layout_on_a_cluster_is_refused() {
    let Ok(nodes) = std::env::var("BOTMESH_TEST_REDIS_CLUSTER") else { return support::skip() };
    for node in nodes.split(',') {
        let text = refusal(RedisStore::connect(node)).await;
        assert!(text.contains("node of a cluster") && text.contains("`RedisStore::cluster`"));
    }
}

/// C12: a wrong password, a read-only replica and a single server taken for a cluster are refused
/// at the start.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_fit_are_refused() {
    let Some(master) = PrivateServer::start(&["--requirepass", "secret"]) else {
        return support::skip();
    };
    let wrong = format!("redis://:hunter2@127.0.0.1:{}", master.port);
    let text = refusal(RedisStore::connect(wrong)).await;
    assert!(text.contains("password is wrong: correct"), "{text}");
    let port = master.port.to_string();
    let arguments = ["--replicaof", "127.0.0.1", &port, "--masterauth", "secret"];
    let Some(replica) = PrivateServer::start(&arguments) else { return support::skip() };
    let text = refusal(RedisStore::connect(replica.url())).await;
    assert!(text.contains("read-only replica: connect to its master"), "{text}");
    let right = format!("redis://:secret@127.0.0.1:{}", master.port);
    let patience = Duration::from_millis(300);
    let text = refusal(RedisStore::cluster([right]).patience(patience)).await;
    assert!(text.contains("no node of a cluster"), "{text}");
}

/// C4: a server that is away is told as such within a bounded time, and a later start succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_told_as_such() {
    let Some(mut server) = PrivateServer::start(&[]) else { return support::skip() };
    server.kill();
    let patience = Duration::from_millis(300);
    let store = RedisStore::connect(server.url()).patience(patience);
    let coordinator = replica_with(store, LEASE);
    let begun = Instant::now();
    let refused = coordinator.start().await;
    assert!(matches!(refused, Err(CoordinationError::Unavailable { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
    server.start_again();
    coordinator.start().await.unwrap();
    take(&coordinator, "k").await.release().await.unwrap();
    coordinator.stop().await.unwrap();
}

/// C1: a coordinator of a store shares its servers and its prefix.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_of_a_store_has_its_servers_and_prefix() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).prefix("shop").await.unwrap();
    let one = store.coordinator().build().unwrap();
    one.start().await.unwrap();
    let mut behind = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut behind).await.unwrap();
    assert!(keys.contains(&"shop:co:live".to_owned()), "{keys:?}");
    let other = RedisCoordinator::connect(server.url()).prefix("other").build().unwrap();
    other.start().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut behind).await.unwrap();
    assert!(keys.contains(&"other:co:live".to_owned()), "{keys:?}");
    one.stop().await.unwrap();
    other.stop().await.unwrap();
}
