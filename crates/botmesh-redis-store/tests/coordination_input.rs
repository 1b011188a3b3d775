//! Chats with strange names, replicas whose settings differ, servers that forget.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::coordination::{Coordinator as _, CoordinatorEvent, CoordinatorSettings};
use botmesh_core::{ChatKey, ProviderId};
use botmesh_redis_store::{RedisCoordinator, RedisStore, RedisStoreBuilder};
use botmesh_test_support::replica::{LEASE, acquire, take};
use support::PrivateServer;
use support::replica::{replica, replica_with};

fn strange() -> Vec<ChatKey> {
    let provider = ProviderId::new("suite").unwrap();
    let giant = "x".repeat(300);
    let names = [
        "a",
        "A",
        " ",
        "a b",
        "a\0b",
        "a\nb\r\n",
        "{a}",
        "{b}:c",
        "}{",
        "a|b",
        "1/a#1",
        "a:b",
        "%",
        "%2F",
        "*",
        "\\",
        "\"'",
        "é",
        "e\u{301}",
        "\u{202e}x",
        "👩‍👩‍👧",
        &giant,
    ];
    names.iter().map(|name| ChatKey::new(&provider, name).unwrap()).collect()
}

/// Holds all of them at once, and hands each over to another replica by a wake-up.
async fn hand_over(through: impl Fn() -> RedisStoreBuilder) {
    let prefix = format!("names-{}", uuid::Uuid::new_v4().simple());
    let open = || replica(through().prefix(&prefix));
    let (a, b) = (open().await, open().await);
    let mut held = Vec::new();
    for chat in strange() {
        let turn = acquire(&a, a.reserve(&chat).await.unwrap()).await;
        assert_eq!(turn.key(), &chat);
        held.push((turn, b.reserve(&chat).await.unwrap()));
    }
    for (turn, ticket) in held {
        let (fence, key) = (turn.fence(), turn.key().clone());
        let incarnation = a.incarnation();
        let (next, released) = tokio::join!(acquire(&b, ticket), turn.release());
        released.unwrap();
        assert!(next.fence() > fence && next.key() == &key);
        assert_eq!(next.previous_holder().cloned(), incarnation, "{key:?}");
        next.release().await.unwrap();
    }
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}

/// C3: chats with any names have turns of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_of_any_name_have_turns_of_their_own() {
    let Some(_) = support::single() else { return support::skip() };
    hand_over(|| support::single().unwrap()).await;
}

/// C12: so they have on a cluster, where braces in a name do not decide on its slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_of_any_name_have_turns_of_their_own_on_a_cluster() {
    let Some(_) = support::cluster() else { return support::skip() };
    hand_over(|| support::cluster().unwrap()).await;
}

fn with_leases(
    through: impl Fn() -> RedisStoreBuilder,
    prefix: &str,
    lease: Duration,
    grace: Duration,
) -> RedisCoordinator {
    let settings = CoordinatorSettings::builder().lease(lease).grace(grace).build().unwrap();
    RedisCoordinator::through(through().prefix(prefix)).settings(settings).build().unwrap()
}

async fn tell_of_leases(through: impl Fn() -> RedisStoreBuilder + Copy) {
    let prefix = format!("leases-{}", uuid::Uuid::new_v4().simple());
    let (shortest, longest) = (LEASE, LEASE * 2);
    let first = with_leases(through, &prefix, longest, longest);
    first.start().await.unwrap();
    for (grace, told) in [(shortest, true), (longest, false)] {
        let second = with_leases(through, &prefix, shortest, grace);
        let mut events = second.subscribe();
        second.start().await.unwrap();
        let wanted = told.then_some(CoordinatorEvent::LeasesDiffer { shortest, longest });
        assert_eq!(events.try_recv().ok(), wanted);
        second.stop().await.unwrap();
    }
    first.stop().await.unwrap();
}

/// C5: leases that differ between replicas are told at the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_that_differ_are_told_at_the_start() {
    let Some(_) = support::single() else { return support::skip() };
    tell_of_leases(|| support::single().unwrap()).await;
}

/// C12: so they are on a cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_that_differ_are_told_at_the_start_on_a_cluster() {
    let Some(_) = support::cluster() else { return support::skip() };
    tell_of_leases(|| support::cluster().unwrap()).await;
}

/// C3: a server that throws keys away, and with them turns, is warned about at the start.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_throws_turns_away_is_warned_about() {
    let arguments = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = PrivateServer::start(&arguments) else { return support::skip() };
    let coordinator = replica_with(RedisStore::connect(server.url()), LEASE);
    assert!(coordinator.warnings().is_empty());
    coordinator.start().await.unwrap();
    let [warning] = &coordinator.warnings()[..] else { panic!("{:?}", coordinator.warnings()) };
    assert!(warning.contains("turns") && warning.contains("noeviction"), "{warning}");
    take(&coordinator, "k").await.release().await.unwrap();
    coordinator.stop().await.unwrap();
}
