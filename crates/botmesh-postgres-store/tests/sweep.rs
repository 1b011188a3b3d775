//! What ended long ago leaves the tables.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use botmesh_core::id::Fence;
use botmesh_core::store::{CheckpointStore as _, Collection, DocumentStore as _, Store as _, Swap};
use botmesh_postgres_store::PostgresStore;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use support::{body, chat};

async fn run(connection: &mut PgConnection, prefix: &str, text: &str) {
    let text = text.replace("{p}", prefix);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
}

async fn number(connection: &mut PgConnection, prefix: &str, text: &str) -> i64 {
    let text = text.replace("{p}", prefix);
    sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(connection).await.unwrap()
}

const KEPT: &str = "SELECT (SELECT count(*) FROM {p}documents)
    + (SELECT count(*) FROM {p}checkpoints) + (SELECT count(*) FROM {p}locks)";

/// B2, B3: rows that ended long ago leave the tables, and no number comes again although all were
/// given by a clock that was an hour ahead. A row that somebody is about to change is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_ended_long_ago_is_swept_and_its_numbers_never_come_again() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let store = open.prefix(&prefix).await.unwrap();
    let locks = store.locks().unwrap();
    let minute = std::time::Duration::from_secs(60);
    for number in 0..20 {
        let name = number.to_string();
        let key = chat(&name);
        store.set_checkpoint(&key, body("text"), Fence::new(1)).await.unwrap();
        store.clear_checkpoint(&key).await.unwrap();
        let saved = store.save_document_if(Collection::Chats, &name, "text", None).await.unwrap();
        let Swap::Applied(revision) = saved else { panic!("refused") };
        let removed = store.remove_document_if(Collection::Chats, &name, revision).await.unwrap();
        assert_ne!(removed, Swap::Refused);
        let lock = locks.acquire_lock_fenced(&name, minute).await.unwrap().unwrap();
        assert!(locks.release_lock(&name, &lock.token).await.unwrap());
    }
    let mut behind = support::plain(&url).await;
    // An hour in microseconds: the time has passed, and the clock that gave the numbers was ahead.
    let age =
        "UPDATE {p}documents SET revision = revision + 3600000000, ends_at = ends_at - 3600000000;
        UPDATE {p}checkpoints SET revision = revision + 3600000000, ends_at = ends_at - 3600000000;
        UPDATE {p}locks SET fence = fence + 3600000000, ends_at = ends_at - 3600000000";
    run(&mut behind, &prefix, age).await;
    let highest = "SELECT greatest((SELECT max(revision) FROM {p}checkpoints),
        (SELECT max(revision) FROM {p}documents), (SELECT max(fence) FROM {p}locks))";
    let highest = u64::try_from(number(&mut behind, &prefix, highest).await).unwrap();

    // Somebody gives one of the ended chats a checkpoint, and has not committed it yet.
    let revive =
        "BEGIN; UPDATE {p}checkpoints SET body = 'text', ends_at = NULL WHERE chat = 'test:3'";
    run(&mut behind, &prefix, revive).await;
    for _ in 0..3 * 128 {
        store.clear_checkpoint(&chat("nobody")).await.unwrap();
    }
    run(&mut behind, &prefix, "COMMIT").await;
    assert_eq!(number(&mut behind, &prefix, KEPT).await, 1, "only the row that lasts");
    assert!(store.load_checkpoint(&chat("3")).await.unwrap().is_some(), "swept while it changed");

    let revision = store.set_checkpoint(&chat("7"), body("text"), Fence::new(1)).await.unwrap();
    assert!(revision.get() > highest, "{revision} after {highest}");
    let saved = store.save_document_if(Collection::Chats, "7", "text", None).await.unwrap();
    assert!(matches!(saved, Swap::Applied(revision) if revision.get() > highest), "{saved:?}");
    let lock = locks.acquire_lock_fenced("7", minute).await.unwrap().unwrap();
    assert!(lock.fence.get() > highest, "fence {} after {highest}", lock.fence);
}

/// Waits until no connection of this name is left: then it has told all that it counted.
async fn closed(connection: &mut PgConnection, name: &str) {
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{p}'";
    while number(connection, name, open).await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Every query has an index: none reads a whole table once there are many rows.
#[tokio::test(flavor = "multi_thread")]
async fn no_query_reads_a_whole_table() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let named = format!("{url}?application_name={prefix}");
    let open = || PostgresStore::connect(&named).prefix(&prefix);
    open().await.unwrap().close();
    let mut behind = support::plain(&url).await;
    let fill = "INSERT INTO {p}documents (collection, name, revision, body, ends_at)
            SELECT 'users', convert_to(n::text, 'UTF8'), n, 'x', CASE WHEN n % 600 = 0 THEN 1 END
            FROM generate_series(1, 60000) AS n;
        INSERT INTO {p}checkpoints (chat, revision, fence, body, wake_at, ends_at)
            SELECT convert_to('test:' || n, 'UTF8'), n, 1, 'x',
                CASE WHEN n % 600 = 0 THEN n END, CASE WHEN n % 600 = 1 THEN 1 END
            FROM generate_series(1, 60000) AS n;
        INSERT INTO {p}locks (name, fence, token, ends_at)
            SELECT convert_to(n::text, 'UTF8'), n, 'x', CASE WHEN n % 600 = 0 THEN 1 ELSE 9e18 END
            FROM generate_series(1, 60000) AS n;
        ANALYZE {p}documents; ANALYZE {p}checkpoints; ANALYZE {p}locks";
    run(&mut behind, &prefix, fill).await;
    drop(behind);
    let mut behind = support::plain(&url).await;
    let scans = "SELECT CAST(coalesce(sum(seq_scan), 0) AS BIGINT) FROM pg_stat_user_tables
        WHERE relname IN ('{p}documents', '{p}checkpoints', '{p}locks')";
    closed(&mut behind, &prefix).await;
    let mut behind = support::plain(&url).await;
    let before = number(&mut behind, &prefix, scans).await;

    let store = open().await.unwrap();
    let key = chat("7");
    let minute = std::time::Duration::from_secs(60);
    let locks = store.locks().unwrap();
    for round in 0..400 {
        store.load_document(Collection::Users, "7").await.unwrap();
        let saved = store.save_document_if(Collection::Users, "7", "x", None).await.unwrap();
        assert_eq!(saved, Swap::Refused);
        store.load_checkpoint(&key).await.unwrap();
        store.set_checkpoint(&key, body("x"), Fence::new(round)).await.unwrap();
        let lock = locks.acquire_lock_fenced("new", minute).await.unwrap().unwrap();
        locks.renew_lock("new", &lock.token, minute).await.unwrap();
        locks.release_lock("new", &lock.token).await.unwrap();
        if round % 40 == 0 {
            store.checkpoints_to_wake(minute, 10).await.unwrap();
        }
    }
    store.close();
    closed(&mut behind, &prefix).await;
    let after = number(&mut behind, &prefix, scans).await;
    assert_eq!(after - before, 0, "a whole table was read");
    let used = "SELECT CAST(sum(idx_scan) AS BIGINT) FROM pg_stat_user_tables
        WHERE relname LIKE '{p}%'";
    assert!(number(&mut behind, &prefix, used).await > 1000, "the counts are not told");
}

/// Every query of the inbox has an index, and none reads what is done in a chat.
#[cfg(feature = "durability")]
#[tokio::test(flavor = "multi_thread")]
async fn no_query_of_the_inbox_reads_a_whole_table_or_chat() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let named = format!("{url}?application_name={prefix}");
    let open = || PostgresStore::connect(&named).prefix(&prefix);
    open().await.unwrap().close();
    let mut behind = support::plain(&url).await;
    let fill = "INSERT INTO {p}inbox (chat, position, provider, message, state, attempts, due_at,
            ends_at)
        SELECT convert_to(CASE WHEN n % 6 = 0 THEN 'test:' || n ELSE 'test:a' END, 'UTF8'), n,
            'test', convert_to(n::text, 'UTF8'),
            CASE WHEN n % 6 > 0 THEN 2 WHEN n % 12 = 0 THEN 1 ELSE 3 END, 0, 0,
            CASE WHEN n % 600 = 1 THEN 1 ELSE 4e18 END
        FROM generate_series(1, 60000) AS n;
        ANALYZE {p}inbox";
    run(&mut behind, &prefix, fill).await;
    closed(&mut behind, &prefix).await;
    let mut behind = support::plain(&url).await;
    let counts = "SELECT CAST(sum({what}) AS BIGINT) FROM pg_stat_user_tables
        WHERE relname = '{p}inbox'";
    let (scans, fetched) =
        (counts.replace("{what}", "seq_scan"), counts.replace("{what}", "idx_tup_fetch"));
    let before =
        (number(&mut behind, &prefix, &scans).await, number(&mut behind, &prefix, &fetched).await);
    let store = open().await.unwrap();
    botmesh_test_support::processing::try_everything(&store, 300).await;
    store.close();
    closed(&mut behind, &prefix).await;
    assert_eq!(number(&mut behind, &prefix, &scans).await, before.0, "a whole table was read");
    let read = number(&mut behind, &prefix, &fetched).await - before.1;
    assert!((1_000..300_000).contains(&read), "{read} rows were read");
}
