use std::time::Duration;

use botmesh_core::Fence;
use botmesh_core::store::{Begun, CheckpointStore, Store as _, StoreError};
use botmesh_sqlite_store::SqliteStore;
use sqlx::ConnectOptions;

use crate::{body, chat};

/// B5: many who open a new file at once all succeed, and see one schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_open_a_new_file_at_once() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bot.db");
        let opening: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { SqliteStore::open(path).await })
            })
            .collect();
        let mut stores = Vec::new();
        for store in opening {
            stores.push(store.await.unwrap().unwrap());
        }
        stores[0].set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
        for store in &stores {
            assert_eq!(store.load_checkpoint(&chat("a")).await.unwrap().unwrap().body, "text");
        }
    }
}

/// B5: a schema of a newer release is refused with a clear error, and left as it is.
#[tokio::test]
async fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    SqliteStore::open(&path).await.unwrap().close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    let newer = "UPDATE botmesh_meta SET value = 999 WHERE name = 'schema'";
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("upgrade the program"), "{error}");
    let other = SqliteStore::builder(&path).prefix("other_").unwrap().open().await;
    other.unwrap().set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
}

/// B5: a file of the release without an inbox gets one, and that of a newer release is refused.
#[tokio::test]
async fn an_older_file_gets_an_inbox_and_a_newer_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.set_checkpoint(&chat("a"), body("kept"), Fence::new(1)).await.unwrap();
    store.close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    let older = "DROP TABLE botmesh_inbox; DELETE FROM botmesh_meta WHERE name = 'inbox'";
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.load_checkpoint(&chat("a")).await.unwrap().unwrap().body, "kept");
    let inbox = store.inbox().unwrap();
    let begun = inbox.begin(&chat("a"), Fence::new(1), Duration::ZERO).await.unwrap();
    assert_eq!(begun, Begun::Nothing);
    store.close().await;
    let newer = "UPDATE botmesh_meta SET value = 999 WHERE name = 'inbox'";
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 1, .. }), "{error:?}");
}
