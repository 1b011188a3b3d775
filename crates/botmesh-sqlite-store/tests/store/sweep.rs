use std::time::Duration;

use botmesh_core::Fence;
use botmesh_core::store::{CheckpointStore, Collection, DocumentStore, Store as _, Swap};
use botmesh_sqlite_store::SqliteStore;
use sqlx::{ConnectOptions as _, SqliteConnection};

use crate::{body, chat};

const MINUTE: Duration = Duration::from_secs(60);

/// The number of rows that are kept in all tables.
async fn kept(connection: &mut SqliteConnection) -> i64 {
    let count = "SELECT (SELECT count(*) FROM botmesh_documents)
        + (SELECT count(*) FROM botmesh_checkpoints) + (SELECT count(*) FROM botmesh_locks)";
    sqlx::query_scalar(count).fetch_one(connection).await.unwrap()
}

/// B2, B3: rows that ended long ago leave the file, and no number comes again although all were
/// given by a clock that was an hour ahead.
#[tokio::test]
async fn what_ended_long_ago_is_swept_and_its_numbers_never_come_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let locks = store.locks().unwrap();
    for number in 0..50 {
        let name = number.to_string();
        let key = chat(&name);
        store.set_checkpoint(&key, body("text"), Fence::new(1)).await.unwrap();
        store.clear_checkpoint(&key).await.unwrap();
        let saved = store.save_document_if(Collection::Chats, &name, "text", None).await.unwrap();
        let Swap::Applied(revision) = saved else { panic!("refused") };
        let removed = store.remove_document_if(Collection::Chats, &name, revision).await.unwrap();
        assert!(matches!(removed, Swap::Applied(_)));
        let lock = locks.acquire_lock_fenced(&name, MINUTE).await.unwrap().unwrap();
        assert!(locks.release_lock(&name, &lock.token).await.unwrap());
    }
    let lasting = chat("lasting");
    store.set_checkpoint(&lasting, body("text"), Fence::new(1)).await.unwrap();

    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    assert_eq!(kept(&mut connection).await, 151);
    // An hour in microseconds: the time has passed, and the clock that gave the numbers was ahead.
    let age = "UPDATE botmesh_documents
            SET revision = revision + 3600000000, ends_at = ends_at - 3600000000;
        UPDATE botmesh_checkpoints
            SET revision = revision + 3600000000, ends_at = ends_at - 3600000000;
        UPDATE botmesh_locks SET fence = fence + 3600000000, ends_at = ends_at - 3600000000";
    sqlx::raw_sql(age).execute(&mut connection).await.unwrap();
    let highest = "SELECT max(max(revision), (SELECT max(fence) FROM botmesh_locks))
        FROM botmesh_checkpoints WHERE ends_at IS NOT NULL";
    let highest: i64 = sqlx::query_scalar(highest).fetch_one(&mut connection).await.unwrap();
    let highest = u64::try_from(highest).unwrap();

    for _ in 0..3 * 128 {
        store.clear_checkpoint(&chat("nobody")).await.unwrap();
    }
    assert_eq!(kept(&mut connection).await, 1, "only the row that lasts");
    assert!(store.load_checkpoint(&lasting).await.unwrap().is_some());

    let revision = store.set_checkpoint(&chat("7"), body("text"), Fence::new(1)).await.unwrap();
    assert!(revision.get() > highest, "{revision} after {highest}");
    let saved = store.save_document_if(Collection::Chats, "7", "text", None).await.unwrap();
    assert!(matches!(saved, Swap::Applied(revision) if revision.get() > highest), "{saved:?}");
    let lock = locks.acquire_lock_fenced("7", MINUTE).await.unwrap().unwrap();
    assert!(lock.fence.get() > highest, "fence {} after {highest}", lock.fence);
}
