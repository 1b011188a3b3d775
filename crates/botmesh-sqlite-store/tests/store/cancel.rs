use std::time::Duration;

use botmesh_core::Fence;
use botmesh_core::store::{CheckpointStore, Store as _};
use botmesh_sqlite_store::SqliteStore;

use crate::{body, chat};

/// Polls a call for a moment, and drops it wherever it is then.
async fn give_up_after<T>(time: Duration, call: impl Future<Output = T>) {
    let _ = tokio::time::timeout(time, call).await;
}

/// B7: a caller that gives up in the middle of a call disturbs no other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_disturbs_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("bot.db")).await.unwrap();
    let (given_up, kept) = (chat("given up"), chat("kept"));
    for round in 0..200_u64 {
        let time = Duration::from_micros(round * 3);
        let text = round.to_string();
        tokio::join!(
            give_up_after(time, store.prepare()),
            give_up_after(time, store.set_checkpoint(&given_up, body("x"), Fence::new(1))),
            give_up_after(time, store.load_checkpoint(&given_up)),
            async {
                let write = store.set_checkpoint(&kept, body(&text), Fence::new(1));
                let revision = write.await.unwrap();
                let read = store.load_checkpoint(&kept).await.unwrap().unwrap();
                assert_eq!((read.revision, read.body), (revision, text.clone()));
            },
        );
    }
}

/// B1: what one caller wrote and then cleared stays cleared, although it gave up the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_given_up_does_not_overtake_a_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("bot.db")).await.unwrap();
    for round in 0..200_u64 {
        let key = chat(&round.to_string());
        let write = store.set_checkpoint(&key, body("x"), Fence::new(1));
        give_up_after(Duration::from_micros(round), write).await;
        store.clear_checkpoint(&key).await.unwrap();
        assert_eq!(store.load_checkpoint(&key).await.unwrap(), None, "round {round}");
    }
}
