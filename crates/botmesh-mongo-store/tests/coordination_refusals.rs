//! What a coordinator tells at its start when the server does not fit, and chats with strange names.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::coordination::{
    CoordinationError, Coordinator as _, CoordinatorEvent, CoordinatorSettings,
};
use botmesh_core::{ChatKey, ProviderId};
use botmesh_mongo_store::{MongoCoordinator, MongoStore, MongoStoreBuilder};
use botmesh_test_support::replica::{acquire, chat, take};
use mongodb::bson::doc;
use support::replica::{LEASE, replica, replica_with};
use support::server::PrivateServer;

/// Why a coordinator does not start. Nothing that it says may hold the password of these tests.
async fn refusal(store: MongoStoreBuilder) -> String {
    let coordinator = replica_with(store, LEASE);
    let text = match coordinator.start().await {
        Err(error @ CoordinationError::Unfit { .. }) => format!("{error} {error:?}"),
        other => panic!("not refused: {other:?}"),
    };
    let text = format!("{text} {coordinator:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(coordinator.reserve(&chat("k")).await.is_err());
    text
}

/// C16: a wrong password, a secondary and rows of a newer version are refused at the start, with
/// what to do.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_fit_are_refused() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let database = server.client().await.database("botmesh");
    let newer = doc! { "_id": "coordination", "version": 9_i64 };
    database.collection("newer_meta").insert_one(newer).await.unwrap();
    let text = refusal(support::patient(MongoStore::connect(server.url())).prefix("newer_")).await;
    assert!(text.contains("upgrade the program"), "{text}");

    let wrong = format!("mongodb://bot:hunter2@127.0.0.1:{}", server.port);
    let text = refusal(support::patient(MongoStore::connect(wrong))).await;
    assert!(text.contains("the user or the password is wrong"), "{text}");

    let step_down = doc! { "replSetStepDown": 60, "force": true };
    server.client().await.database("admin").run_command(step_down).await.unwrap();
    let direct = format!("{}/?directConnection=true", server.url());
    let text = refusal(support::patient(MongoStore::connect(direct))).await;
    assert!(text.contains("no primary: give the URL of the replica set"), "{text}");
}

/// C4: a server that is away is told as such within a bounded time, and a later start succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_told_as_such() {
    let Some(mut server) = PrivateServer::prepare(&[]) else { return support::skip() };
    let store = MongoStore::connect(server.url()).patience(Duration::from_millis(300));
    let hasty = replica_with(store, LEASE);
    let begun = Instant::now();
    let refused = hasty.start().await;
    assert!(matches!(refused, Err(CoordinationError::Unavailable { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "after {:?}", begun.elapsed());
    server.start_again().await;
    let patient = replica(support::patient(MongoStore::connect(server.url()))).await;
    take(&patient, "k").await.release().await.unwrap();
    patient.stop().await.unwrap();
}

/// C3: chats with any names have turns of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_of_any_name_have_turns_of_their_own() {
    let Some(open) = support::store() else { return support::skip() };
    let provider = ProviderId::new("suite").unwrap();
    let giant = "x".repeat(300);
    let names = [
        "a",
        "A",
        " ",
        "a b",
        "a\0b",
        "a\nb\r\n",
        "$set",
        "$$NOW",
        "a.b",
        "{$gt: 1}",
        "a|b",
        "%",
        "é",
        "e\u{301}",
        "\u{202e}x",
        "👩‍👩‍👧",
        &giant,
    ];
    let prefix = support::prefix();
    let (a, b) = (replica(open.clone().prefix(&prefix)).await, replica(open.prefix(&prefix)).await);
    let mut held = Vec::new();
    for name in names {
        let chat = ChatKey::new(&provider, name).unwrap();
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

/// C5: leases that differ between replicas are told at the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_that_differ_are_told_at_the_start() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    let (shortest, longest) = (LEASE, LEASE * 2);
    let with = |lease: Duration, grace: Duration| {
        let settings = CoordinatorSettings::builder().lease(lease).grace(grace).build().unwrap();
        let store = open.clone().prefix(&prefix);
        MongoCoordinator::through(store).settings(settings).build().unwrap()
    };
    let first = with(longest, longest);
    first.start().await.unwrap();
    for (grace, told) in [(shortest, true), (longest, false)] {
        let second = with(shortest, grace);
        let mut events = second.subscribe();
        second.start().await.unwrap();
        let wanted = told.then_some(CoordinatorEvent::LeasesDiffer { shortest, longest });
        assert_eq!(events.try_recv().ok(), wanted);
        second.stop().await.unwrap();
    }
    first.stop().await.unwrap();
}
