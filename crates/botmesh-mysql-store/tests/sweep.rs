//! What ended long ago leaves the tables.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use botmesh_core::id::Fence;
use botmesh_core::store::{CheckpointStore as _, Collection, DocumentStore as _, Store as _, Swap};
use botmesh_mysql_store::MysqlStore;
use sqlx::{AssertSqlSafe, Executor as _, MySqlConnection};
use support::server::PrivateServer;
use support::{body, chat};

async fn run(connection: &mut MySqlConnection, prefix: &str, text: &str) {
    let text = text.replace("{p}", prefix);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
}

async fn number(connection: &mut MySqlConnection, prefix: &str, text: &str) -> i64 {
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
    let sweeping = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..3 * 128 {
                store.clear_checkpoint(&chat("nobody")).await.unwrap();
            }
        }
    });
    // It waits for the row.
    support::until_running(&format!("DELETE FROM {prefix}checkpoints")).await;
    run(&mut behind, &prefix, "COMMIT").await;
    sweeping.await.unwrap();
    assert_eq!(number(&mut behind, &prefix, KEPT).await, 1, "only the row that lasts");
    assert!(store.load_checkpoint(&chat("3")).await.unwrap().is_some(), "swept while it changed");

    let revision = store.set_checkpoint(&chat("7"), body("text"), Fence::new(1)).await.unwrap();
    assert!(revision.get() > highest, "{revision} after {highest}");
    let saved = store.save_document_if(Collection::Chats, "7", "text", None).await.unwrap();
    assert!(matches!(saved, Swap::Applied(revision) if revision.get() > highest), "{saved:?}");
    let lock = locks.acquire_lock_fenced("7", minute).await.unwrap().unwrap();
    assert!(lock.fence.get() > highest, "fence {} after {highest}", lock.fence);
}

/// Every query has an index: none reads a whole table once there are many rows.
#[tokio::test(flavor = "multi_thread")]
async fn no_query_reads_a_whole_table() {
    let watching = ["--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE"];
    let Some(server) = PrivateServer::start(&watching).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let mut behind = support::plain(&server.url()).await;
    let fill = "INSERT INTO {p}documents (collection, name, revision, body, ends_at)
            SELECT 'users', seq, seq, 'x', IF(seq % 600 = 0, 1, NULL) FROM seq_1_to_60000;
        INSERT INTO {p}checkpoints (chat, revision, fence, body, wake_at, ends_at)
            SELECT CONCAT('test:', seq), seq, 1, 'x', IF(seq % 600 = 0, seq, NULL),
                IF(seq % 600 = 1, 1, NULL)
            FROM seq_1_to_60000;
        INSERT INTO {p}locks (name, fence, token, ends_at)
            SELECT seq, seq, 'x', IF(seq % 600 = 0, 1, 9e18) FROM seq_1_to_60000;
        ANALYZE TABLE {p}documents, {p}checkpoints, {p}locks";
    run(&mut behind, "botmesh_", fill).await;
    run(&mut behind, "", "TRUNCATE TABLE mysql.slow_log").await;

    let key = chat("7");
    let minute = std::time::Duration::from_secs(60);
    let locks = store.locks().unwrap();
    let conditional = store.conditional_checkpoints().unwrap();
    for round in 0..400 {
        store.load_document(Collection::Users, "7").await.unwrap();
        let saved = store.save_document_if(Collection::Users, "7", "x", None).await.unwrap();
        assert_eq!(saved, Swap::Refused);
        store.load_checkpoint(&key).await.unwrap();
        store.set_checkpoint(&key, body("x"), Fence::new(round)).await.unwrap();
        conditional.adopt_checkpoint(&key, Fence::new(round)).await.unwrap();
        let lock = locks.acquire_lock_fenced("new", minute).await.unwrap().unwrap();
        locks.renew_lock("new", &lock.token, minute).await.unwrap();
        locks.release_lock("new", &lock.token).await.unwrap();
        if round % 40 == 0 {
            store.checkpoints_to_wake(minute, 10).await.unwrap();
        }
    }
    let seen = "SELECT COUNT(*) FROM mysql.slow_log WHERE sql_text LIKE '%botmesh_%'";
    assert!(number(&mut behind, "", seen).await > 2000, "the queries are not told");
    // Ended are a hundred rows of each table, which sweeps read; there are 60,000.
    let most = "SELECT CAST(MAX(rows_examined) AS SIGNED) FROM mysql.slow_log
        WHERE sql_text NOT LIKE '%slow_log%'";
    let most = number(&mut behind, "", most).await;
    assert!(most < 2_000, "a query has read {most} rows");
}

/// Every query of the inbox has an index, and none reads what is done in a chat.
#[cfg(feature = "durability")]
#[tokio::test(flavor = "multi_thread")]
async fn no_query_of_the_inbox_reads_a_whole_table_or_chat() {
    let watching = ["--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE"];
    let Some(server) = PrivateServer::start(&watching).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let mut behind = support::plain(&server.url()).await;
    let fill = "INSERT INTO {p}inbox (chat, position, provider, message, state, attempts, due_at,
            ends_at)
        SELECT IF(seq % 6 = 0, CONCAT('test:', seq), 'test:a'), seq, 'test', seq,
            CASE WHEN seq % 6 > 0 THEN 2 WHEN seq % 12 = 0 THEN 1 ELSE 3 END, 0, 0,
            IF(seq % 600 = 1, 1, 4e18)
        FROM seq_1_to_60000;
        ANALYZE TABLE {p}inbox";
    run(&mut behind, "botmesh_", fill).await;
    run(&mut behind, "", "TRUNCATE TABLE mysql.slow_log").await;
    botmesh_test_support::processing::try_everything(&store, 100).await;
    let seen = "SELECT COUNT(*) FROM mysql.slow_log WHERE sql_text LIKE '%botmesh_inbox%'";
    assert!(number(&mut behind, "", seen).await > 1000, "the queries are not told");
    let most = "SELECT CAST(MAX(rows_examined) AS SIGNED) FROM mysql.slow_log
        WHERE sql_text NOT LIKE '%slow_log%'";
    let most = number(&mut behind, "", most).await;
    let which = "SELECT sql_text FROM mysql.slow_log WHERE sql_text NOT LIKE '%slow_log%'
        ORDER BY rows_examined DESC LIMIT 1";
    let which: String = sqlx::query_scalar(which).fetch_one(&mut behind).await.unwrap();
    assert!(most < 1_000, "a query has read {most} rows: {which}");
}
