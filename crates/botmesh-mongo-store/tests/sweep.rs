//! What ended long ago leaves the collections.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, CheckpointWrite, Collection, DocumentStore as _, LockStore as _, Swap,
};
use mongodb::bson::{DateTime, doc};
use support::{body, chat};

/// B2, B3: rows that ended long ago leave the collections by themselves. Those that ended just now
/// and those that have not ended stay.
#[tokio::test(flavor = "multi_thread")]
async fn what_ended_long_ago_is_swept() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    let store = open.prefix(&prefix).await.unwrap();
    let minute = Duration::from_secs(60);
    for name in ["old", "new"] {
        let key = chat(name);
        store.set_checkpoint(&key, body("text"), Fence::new(1)).await.unwrap();
        store.clear_checkpoint(&key).await.unwrap();
        let saved = store.save_document_if(Collection::Chats, name, "text", None).await.unwrap();
        let Swap::Applied(revision) = saved else { panic!("refused") };
        let removed = store.remove_document_if(Collection::Chats, name, revision).await.unwrap();
        assert_ne!(removed, Swap::Refused);
        let lock = store.acquire_lock_fenced(name, minute).await.unwrap().unwrap();
        assert!(store.release_lock(name, &lock.token).await.unwrap());
    }
    store.set_checkpoint(&chat("kept"), body("text"), Fence::new(1)).await.unwrap();
    let write = CheckpointWrite { expires_in: Some(minute), ..body("text") };
    store.set_checkpoint(&chat("short"), write, Fence::new(1)).await.unwrap();
    let saved = store.save_document_if(Collection::Chats, "kept", "text", None).await.unwrap();
    assert_ne!(saved, Swap::Refused);

    let hour_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - 3_600_000);
    let mut left = Vec::new();
    for (kind, old) in [("documents", "chats:old"), ("checkpoints", "test:old"), ("locks", "old")] {
        let rows = support::rows(&prefix, kind).await;
        let aged = doc! { "$set": { "ends_at": hour_ago } };
        let aged = rows.update_one(doc! { "_id": old }, aged).await.unwrap();
        assert_eq!(aged.matched_count, 1, "{kind}");
        left.push((rows, old));
    }
    // The server looks once a minute.
    for (rows, old) in &left {
        while rows.find_one(doc! { "_id": *old }).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
    let mut kept = Vec::new();
    for (rows, _) in &left {
        kept.push(rows.count_documents(doc! {}).await.unwrap());
    }
    assert_eq!(kept, [2, 3, 1], "documents, checkpoints and locks");
}

/// Every query that does not name a key has an index.
#[tokio::test(flavor = "multi_thread")]
async fn the_indexes_are_those_that_the_queries_need() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    open.prefix(&prefix).await.unwrap();
    for (kind, wanted) in [
        ("documents", &["_id_", "ends"][..]),
        ("checkpoints", &["_id_", "claim_at", "dead_at", "done_at", "ends", "lease_at", "wakes"]),
        ("locks", &["_id_", "ends"]),
    ] {
        let rows = support::rows(&prefix, kind).await;
        let mut names = rows.list_index_names().await.unwrap();
        names.sort();
        assert_eq!(names, wanted, "{kind}");
    }
}
