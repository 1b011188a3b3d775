//! What happens when the disk of the server is full: a typed error, and nothing is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, Collection, DocumentStore as _, Store as _, StoreError, Swap,
};
use botmesh_postgres_store::PostgresStore;
use support::small_disk::SmallDisk;
use support::{body, chat};

const USERS: Collection = Collection::Users;

/// A text that no compression makes small.
fn text(seed: u64) -> String {
    let mut number = seed;
    let digits = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        format!("{number:016x}")
    });
    digits.take(500).collect()
}

/// B7: a store says that the disk is full, keeps what it has, and writes again once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_on_a_full_disk_says_so_and_loses_nothing() {
    let Some(disk) = SmallDisk::new().await else { return support::skip() };
    let store = PostgresStore::connect(disk.url()).max_connections(4).await.unwrap();
    let Swap::Applied(revision) = store.save_document_if(USERS, "a", "kept", None).await.unwrap()
    else {
        panic!("refused")
    };
    let checkpoint = store.set_checkpoint(&chat("a"), body("kept"), Fence::new(7)).await.unwrap();
    disk.fill().await;

    // What is new needs a page sooner or later.
    let mut saved = Vec::new();
    let mut errors = Vec::new();
    for number in 0..40 {
        let (name, text) = (format!("new {number}"), text(number));
        match store.save_document_if(USERS, &name, &text, None).await {
            Ok(written) => saved.push((name, text, written)),
            Err(error) => errors.push(error),
        }
    }
    assert!(!errors.is_empty(), "the disk is not full");
    for error in errors {
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("room"), "{error}");
    }
    let kept = store.load_document(USERS, "a").await.unwrap().unwrap();
    assert_eq!((kept.revision, &*kept.body), (revision, "kept"));
    let kept = store.load_checkpoint(&chat("a")).await.unwrap().unwrap();
    assert_eq!((kept.revision, &*kept.body), (checkpoint, "kept"));

    disk.make_room().await;
    let swap = store.save_document_if(USERS, "a", "next", Some(revision)).await.unwrap();
    assert_ne!(swap, Swap::Refused, "the revision from before");
    let conditional = store.conditional_checkpoints().unwrap();
    let key = chat("a");
    let late = conditional.set_checkpoint_if(&key, body("x"), Some(checkpoint), Fence::new(6));
    assert_eq!(late.await.unwrap(), Swap::Refused, "a fence from before");
    for (name, text, written) in saved {
        assert_ne!(written, Swap::Refused);
        assert_eq!(store.load_document(USERS, &name).await.unwrap().unwrap().body, text);
    }
    for number in 0..40 {
        let name = format!("later {number}");
        let saved = store.save_document_if(USERS, &name, &text(number), None).await;
        assert_ne!(saved.unwrap(), Swap::Refused);
    }
}

#[cfg(feature = "durability")]
mod inbox {
    use std::time::Duration;

    use botmesh_core::id::MessageId;
    use botmesh_core::store::{Admission, Begun, NewRecord};

    use super::*;

    /// G6, B7: a full disk is told as such, every record that was taken in is kept, and once there is
    /// room they go on in their order.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_inbox_on_a_full_disk_says_so_and_loses_nothing() {
        let Some(disk) = SmallDisk::new().await else { return support::skip() };
        let store = PostgresStore::connect(disk.url()).max_connections(4).await.unwrap();
        let inbox = store.inbox().unwrap();
        let key = chat("a");
        let admit = async |number: u64| {
            let body = text(number);
            let id = MessageId::new(number.to_string()).unwrap();
            let (message, body, lease) = (Some(&id), Some(&*body), Duration::from_secs(60));
            inbox.admit(NewRecord { chat: &key, message, body, lease, most: 9_999 }).await
        };
        let mut taken = Vec::new();
        assert!(matches!(admit(0).await, Ok(Admission::New { .. })));
        disk.fill().await;
        let mut errors = 0;
        for number in 1..60 {
            match admit(number).await {
                Ok(Admission::New { position, .. }) => taken.push(position),
                Err(StoreError::Full { .. }) => errors += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(errors > 0, "the disk is not full");
        disk.make_room().await;
        assert!(matches!(admit(0).await, Ok(Admission::Known)));
        let mut found = Vec::new();
        while let Begun::Record(record) =
            inbox.begin(&key, Fence::new(1), Duration::ZERO).await.unwrap()
        {
            found.push(record.position);
            assert!(inbox.bury(&key, record.position, Fence::new(1), "e").await.unwrap());
        }
        assert_eq!(found[1..], taken);
    }
}

#[cfg(feature = "coordination")]
mod coordination {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use botmesh_core::coordination::{CoordinationError, Coordinator as _};
    use botmesh_test_support::replica::{LEASE, chat, take};
    use tokio::task::JoinSet;

    use super::support::replica::replica_with;
    use super::*;

    /// C4: a coordinator tells that its disk is full, whoever holds a turn keeps it and can release
    /// it, and once there is room everything goes on.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_coordinator_on_a_full_disk_says_so_and_loses_no_turn() {
        let Some(disk) = SmallDisk::new().await else { return support::skip() };
        let coordinator = Arc::new(replica_with(PostgresStore::connect(disk.url()), LEASE));
        coordinator.start().await.unwrap();
        let held = take(&coordinator, "held").await;
        take(&coordinator, "again").await.release().await.unwrap();
        disk.fill().await;

        // Many at once, so that they are sent together. Long names, so that pages are used up.
        let name = |number: usize| format!("{number}{}", "x".repeat(400));
        let begun = Instant::now();
        let mut many = JoinSet::new();
        for number in 0..200 {
            let (key, coordinator) = (chat(&name(number)), Arc::clone(&coordinator));
            many.spawn(async move { coordinator.reserve(&key).await });
        }
        let reserved = many.join_all().await;
        assert!(begun.elapsed() < LEASE * 6, "after {:?}", begun.elapsed());
        let (kept, refused): (Vec<_>, Vec<_>) = reserved.into_iter().partition(Result::is_ok);
        assert!(!refused.is_empty(), "the disk is not full");
        for error in refused.into_iter().filter_map(Result::err) {
            assert!(matches!(error, CoordinationError::Unavailable { .. }), "{error:?}");
            assert!(format!("{error:?}").contains("53100"), "{error:?}");
        }
        // Longer than a lease: heartbeats go on.
        tokio::time::sleep(LEASE + Duration::from_millis(200)).await;
        held.check().unwrap();
        held.release().await.unwrap();
        drop(kept);

        disk.make_room().await;
        for number in 0..200 {
            take(&coordinator, &name(number)).await.release().await.unwrap();
        }
        take(&coordinator, "held").await.release().await.unwrap();
    }
}
