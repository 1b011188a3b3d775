//! What the store does when its server goes away.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::ChatKey;
use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, CheckpointWrite, Collection, ConditionalCheckpointStore as _,
    DocumentStore as _, LockStore as _, Store as _, StoreError, Swap,
};
use botmesh_redis_store::RedisStore;
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::wire::Wire;
use support::PrivateServer;

const CHATS: Collection = Collection::Chats;

fn body(body: &str) -> CheckpointWrite<'_> {
    CheckpointWrite { body, wake_in: None, expires_in: None }
}

/// B7: while the server is away, calls fail with a typed error after a bounded time; once it is
/// back, the same store works.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_recovers_by_itself_when_its_server_is_back() {
    let Some(mut server) =
        PrivateServer::start(&["--appendonly", "yes", "--appendfsync", "always"])
    else {
        return support::skip();
    };
    let patience = Duration::from_millis(300);
    let store = RedisStore::connect(server.url()).patience(patience).await.unwrap();
    assert!(store.is_durable(), "an append-only file is kept");
    let saved = store.save_document_if(CHATS, "a", "1", None).await.unwrap();
    let Swap::Applied(first) = saved else { panic!("{saved:?}") };
    let chat = ChatKey::decode("suite:a").unwrap();
    let checkpoint = store.set_checkpoint(&chat, body("1"), Fence::new(7)).await.unwrap();

    for _ in 0..2 {
        server.kill();
        let begun = Instant::now();
        let error = store.load_document(CHATS, "a").await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.is_transient());
        assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
        server.start_again();
        let read = store.load_document(CHATS, "a").await.unwrap();
        assert_eq!(read.map(|read| (read.revision, read.body)), Some((first, "1".to_owned())));
    }
    let swap = store.save_document_if(CHATS, "a", "2", Some(first)).await.unwrap();
    assert_ne!(swap, Swap::Refused, "the revision from before the restart");
    let late = store.set_checkpoint_if(&chat, body("late"), Some(checkpoint), Fence::new(6)).await;
    assert_eq!(late.unwrap(), Swap::Refused, "a fence from before the restart");
}

/// B7: a call that begins while the server is away succeeds if it comes back in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_server_that_comes_back() {
    let Some(mut server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).await.unwrap();
    server.kill();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.save_document_if(CHATS, "a", "1", None).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.start_again();
    assert_ne!(writing.await.unwrap().unwrap(), Swap::Refused);
}

/// B7: a connection that stands still counts as broken after the time for an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_given_up_and_taken_up_again() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let limit = Duration::from_millis(200);
    let builder = RedisStore::connect(server.url()).patience(limit).response_timeout(limit);
    let store = builder.await.unwrap();
    let signal = |name: &str| {
        let id = server.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    let begun = Instant::now();
    let error = store.load_document(CHATS, "a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}", begun.elapsed());
    signal("-CONT");
    assert_eq!(store.load_document(CHATS, "a").await.unwrap(), None);
}

/// B2: connections that are cut and scripts that are forgotten change no outcome: of many writers
/// from one revision exactly one is told that it won, and what it wrote is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_and_forgotten_scripts_change_no_outcome() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(RedisStore::connect(server.url()).await.unwrap());
    }
    let mut behind = server.connection().await;
    let nemesis = tokio::spawn(async move {
        loop {
            for words in [&["SCRIPT", "FLUSH"][..], &["CLIENT", "KILL", "SKIPME", "yes"]] {
                let _ = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut behind).await;
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        }
    });
    let mut expected = None;
    for round in 0..60 {
        let writes = stores.iter().enumerate().map(|(writer, store)| {
            let (store, text) = (store.clone(), format!("{round} of {writer}"));
            tokio::spawn(async move {
                let swap = store.save_document_if(CHATS, "k", &text, expected).await.unwrap();
                (swap, text)
            })
        });
        let mut winners = Vec::new();
        for write in writes.collect::<Vec<_>>() {
            if let (Swap::Applied(revision), text) = write.await.unwrap() {
                winners.push((revision, text));
            }
        }
        let [(revision, text)] = &winners[..] else { panic!("round {round}: {winners:?}") };
        let read = stores[0].load_document(CHATS, "k").await.unwrap().unwrap();
        assert_eq!((read.revision, &read.body), (*revision, text));
        expected = Some(*revision);

        let lock = stores[1].acquire_lock_fenced("l", Duration::from_secs(60)).await.unwrap();
        let lock = lock.expect("a free lock was not given");
        assert!(stores[1].renew_lock("l", &lock.token, Duration::from_secs(60)).await.unwrap());
        assert!(stores[1].release_lock("l", &lock.token).await.unwrap(), "round {round}");
    }
    nemesis.abort();
}

/// B2: a conditional write whose answer was lost is repeated and recognised: who won is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_lost_is_not_taken_for_a_refused_one() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let proxy = Proxy::start(Wire::Redis, server.port).await;
    let store = RedisStore::connect(proxy.url()).await.unwrap();
    let chat = ChatKey::decode("suite:a").unwrap();
    let (fence, minute) = (Fence::new(7), Duration::from_secs(60));
    let applied = |swap: Result<Swap, StoreError>| {
        assert!(proxy.has_lost_all(), "no answer was lost");
        match swap.unwrap() {
            Swap::Applied(revision) => revision,
            Swap::Refused => panic!("the repeated write was refused"),
        }
    };
    proxy.lose_next_answer();
    let first = applied(store.save_document_if(CHATS, "a", "1", None).await);
    proxy.lose_next_answer();
    let second = applied(store.save_document_if(CHATS, "a", "2", Some(first)).await);
    let read = store.load_document(CHATS, "a").await.unwrap().unwrap();
    assert_eq!((read.revision, read.body.as_str()), (second, "2"));
    proxy.lose_next_answer();
    applied(store.remove_document_if(CHATS, "a", second).await);
    proxy.lose_next_answer();
    let written = applied(store.set_checkpoint_if(&chat, body("1"), None, fence).await);
    proxy.lose_next_answer();
    applied(store.clear_checkpoint_if(&chat, written, fence).await);
    proxy.lose_next_answer();
    let lock = store.acquire_lock_fenced("l", minute).await.unwrap();
    let lock = lock.expect("the repeated request did not get its own lock");
    proxy.lose_next_answer();
    assert!(store.release_lock("l", &lock.token).await.unwrap());
    assert!(!store.release_lock("l", &lock.token).await.unwrap(), "released twice");

    // One without a condition could undo what others did meanwhile: it is not repeated.
    proxy.lose_next_answer();
    let error = store.set_checkpoint(&chat, body("2"), fence).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

/// B1: nothing is left for ever of what was removed, released or has expired.
#[tokio::test(flavor = "multi_thread")]
async fn every_key_that_is_left_behind_expires() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).prefix("shop").await.unwrap();
    let chat = |name: &str| ChatKey::decode(&format!("suite:{name}")).unwrap();
    if let Swap::Applied(revision) = store.save_document_if(CHATS, "a", "1", None).await.unwrap() {
        assert_ne!(store.remove_document_if(CHATS, "a", revision).await.unwrap(), Swap::Refused);
    }
    let soon = CheckpointWrite {
        wake_in: Some(Duration::ZERO),
        expires_in: Some(Duration::from_millis(20)),
        ..body("text")
    };
    store.set_checkpoint(&chat("expired"), soon, Fence::new(1)).await.unwrap();
    store.set_checkpoint(&chat("cleared"), soon, Fence::new(1)).await.unwrap();
    store.clear_checkpoint(&chat("cleared")).await.unwrap();
    store.adopt_checkpoint(&chat("adopted"), Fence::new(1)).await.unwrap();
    let lock = store.acquire_lock_fenced("l", Duration::from_secs(1)).await.unwrap().unwrap();
    store.acquire_lock_fenced("held", Duration::from_secs(1)).await.unwrap();
    store.release_lock("l", &lock.token).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(store.checkpoints_to_wake(Duration::MAX, 9).await.unwrap().is_empty());

    let mut behind = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut behind).await.unwrap();
    assert_eq!(keys.len(), 7, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut behind).await.unwrap();
        let eleven_minutes = 11 * 60 * 1000;
        assert!(key == "shop:meta" || (0..eleven_minutes).contains(&left), "{key}: {left}");
    }
}
