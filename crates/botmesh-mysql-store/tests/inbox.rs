//! What becomes of records when connections are cut, the server is killed, or it has no room left.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use botmesh_core::id::MessageId;
use botmesh_core::store::{Admission, NewRecord, Store as _, StoreError};
use botmesh_mysql_store::MysqlStore;
use botmesh_test_support::processing::process_while;
use botmesh_test_support::schema::gets_an_inbox;
use sqlx::{AssertSqlSafe, Executor as _};
use support::chat;
use support::server::PrivateServer;

const MINUTE: Duration = Duration::from_secs(60);

/// G3: a record whose end was cut off has ended together with its checkpoint, or is pending and the
/// checkpoint is the one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_end_that_is_cut_off_is_whole_or_not_there() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).max_connections(4).await.unwrap();
    let (processed, unknown) = process_while(Arc::new(store), async |processed| {
        let mut other = server.connection().await;
        let mut cuts = 0;
        while cuts < 60 || processed.load(Ordering::Relaxed) < 100 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            cuts += support::cut(&mut other, "bot").await;
        }
    })
    .await;
    println!("{processed} messages, {unknown} ends of unknown outcome");
}

/// G7: whatever a server has confirmed is there after it was killed, and a record and its
/// checkpoint are as they were together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_keeps_records_and_checkpoints_together() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let patience = Duration::from_millis(300);
    let store = MysqlStore::connect(server.url()).patience(patience).await.unwrap();
    let (processed, unknown) = process_while(Arc::new(store), async |processed| {
        for round in 1..=3 {
            while processed.load(Ordering::Relaxed) < round * 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            server.kill();
            server.start_again().await;
        }
    })
    .await;
    println!("{processed} messages, {unknown} ends of unknown outcome");
}

/// G6, B7: a full server is told as such, every record that was taken in is kept, and nothing is
/// there of the one that did not fit.
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_on_a_full_server_says_so_and_loses_nothing() {
    let limited =
        ["--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:24M"];
    let Some(server) = PrivateServer::start(&limited).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let inbox = store.inbox().unwrap();
    let key = chat("a");
    let body = "x".repeat(1 << 20);
    let mut taken = 0_i64;
    let error = loop {
        let id = MessageId::new(taken.to_string()).unwrap();
        let (message, body) = (Some(&id), Some(&*body));
        match inbox.admit(NewRecord { chat: &key, message, body, lease: MINUTE, most: 99 }).await {
            Ok(Admission::New { .. }) => taken += 1,
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
        assert!(taken < 64, "it never gets full");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let mut behind = support::plain(&server.url()).await;
    let kept = "SELECT COUNT(*) FROM botmesh_inbox WHERE state = 1 AND LENGTH(body) = 1048576";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&mut behind).await.unwrap();
    let all = "SELECT COUNT(*) FROM botmesh_inbox";
    let all: i64 = sqlx::query_scalar(all).fetch_one(&mut behind).await.unwrap();
    assert_eq!((kept, all), (taken, taken));
}

/// B5: a database of the release without an inbox gets one, also when many replicas start at once;
/// one of a newer release is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_older_schema_gets_an_inbox_and_a_newer_one_is_refused() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let open = open.prefix(&prefix);
    open.clone().await.unwrap();
    let mut behind = support::plain(&url).await;
    let mut run = async |text: &str| {
        let text = text.replace("{p}", &prefix);
        behind.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
    };
    // As if it had been stopped half-way, too.
    run("DROP TABLE {p}inbox; DELETE FROM {p}meta WHERE name = 'inbox'").await;
    gets_an_inbox(|| open.clone().into_future()).await;
    run("UPDATE {p}meta SET value = 999 WHERE name = 'inbox'").await;
    let error = open.await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 1, .. }), "{error:?}");
}
