use std::time::{Duration, Instant};

use botmesh_core::Fence;
use botmesh_core::store::{CheckpointStore, Store, StoreError};
use botmesh_sqlite_store::SqliteStore;
use sqlx::{ConnectOptions as _, SqliteConnection};

use crate::{body, chat};

/// What another process does that holds the file.
async fn other(path: &std::path::Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}

/// B7: a locked file gives a typed error after the busy timeout, and the store recovers by itself.
#[tokio::test]
async fn a_file_locked_by_another_is_busy_and_then_works_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let timeout = Duration::from_millis(150);
    let store = SqliteStore::builder(&path).busy_timeout(timeout).open().await.unwrap();
    store.set_checkpoint(&chat("a"), body("before"), Fence::new(1)).await.unwrap();
    let mut other = other(&path).await;
    run(&mut other, "BEGIN EXCLUSIVE").await;

    let started = Instant::now();
    let (one, two) = (chat("a"), chat("b"));
    let new = SqliteStore::builder(&path).busy_timeout(timeout).prefix("new_").unwrap();
    let writes = tokio::join!(
        store.set_checkpoint(&one, body("during"), Fence::new(1)),
        store.set_checkpoint(&two, body("during"), Fence::new(1)),
        new.open(),
    );
    for error in [writes.0.unwrap_err(), writes.1.unwrap_err(), writes.2.unwrap_err()] {
        assert!(matches!(error, StoreError::Busy { waited, .. } if waited == timeout), "{error:?}");
        assert!(error.is_transient());
    }
    assert!(started.elapsed() >= timeout, "gave up after {:?}", started.elapsed());
    let read = store.load_checkpoint(&one).await.unwrap().unwrap();
    assert_eq!(read.body, "before", "reading goes on meanwhile");
    // Tables that are there already are only looked at.
    store.prepare().await.unwrap();

    run(&mut other, "ROLLBACK").await;
    store.set_checkpoint(&one, body("after"), Fence::new(1)).await.unwrap();
    assert_eq!(store.load_checkpoint(&one).await.unwrap().unwrap().body, "after");
}

/// B7: a lock that ends within the busy timeout is only waited for.
#[tokio::test]
async fn a_file_that_is_locked_for_a_moment_only_delays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let store = SqliteStore::builder(&path).busy_timeout(Duration::from_secs(20)).open().await;
    let store = store.unwrap();
    let mut other = other(&path).await;
    run(&mut other, "BEGIN IMMEDIATE").await;
    let (key, begun) = (chat("a"), tokio::sync::Notify::new());
    let write = async {
        begun.notify_one();
        store.set_checkpoint(&key, body("text"), Fence::new(1)).await
    };
    let release = async {
        begun.notified().await;
        run(&mut other, "COMMIT").await;
    };
    let (written, ()) = tokio::join!(write, release);
    written.unwrap();
}

/// B7: opening a file that another one keeps locked ends with a typed error.
#[tokio::test]
async fn a_locked_file_cannot_be_opened_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let mut other =
        sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    other = other.locking_mode(sqlx::sqlite::SqliteLockingMode::Exclusive);
    let mut other = other.connect().await.unwrap();
    run(&mut other, "BEGIN EXCLUSIVE").await;
    let builder = SqliteStore::builder(&path).busy_timeout(Duration::from_millis(100));
    let error = builder.open().await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
}
