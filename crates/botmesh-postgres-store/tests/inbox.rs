//! What becomes of records when connections are cut or the server is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{Begun, NewRecord, Store as _, StoreError};
use botmesh_postgres_store::PostgresStore;
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
    let Some(url) = support::url() else { return support::skip() };
    let name = support::prefix();
    let store = PostgresStore::connect(format!("{url}?application_name={name}"));
    let store = store.prefix(&name).max_connections(4).await.unwrap();
    let (processed, unknown) = process_while(Arc::new(store), async |processed| {
        let mut other = support::plain(&url).await;
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE application_name = $1";
        let mut cuts = 0;
        while cuts < 60 || processed.load(Ordering::Relaxed) < 100 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            let cutting = sqlx::query_scalar::<_, i64>(cut).bind(&name);
            cuts += cutting.fetch_one(&mut other).await.unwrap();
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
    let store = PostgresStore::connect(server.url()).patience(patience).await.unwrap();
    let (processed, unknown) = process_while(Arc::new(store), async |processed| {
        for round in 1..=4 {
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
    run("DROP FUNCTION {p}inbox_admit; DROP TABLE {p}inbox; DELETE FROM {p}meta WHERE name = 'inbox'")
        .await;
    gets_an_inbox(|| open.clone().into_future()).await;
    run("UPDATE {p}meta SET value = 999 WHERE name = 'inbox'").await;
    let error = open.await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 1, .. }), "{error:?}");
}

/// G9: to begin a record waits for no disk, as what a crash forgets of it is made good by the next
/// attempt; to admit one does. Who waits for the disk shows where a standby that is not there would
/// have to confirm it.
#[tokio::test(flavor = "multi_thread")]
async fn to_begin_a_record_waits_for_no_disk() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let store = PostgresStore::connect(server.url()).await.unwrap();
    let admit = async |name: String| {
        let (key, body) = (chat(&name), Some("hi"));
        let record = NewRecord { chat: &key, message: None, body, lease: MINUTE, most: 9 };
        store.inbox().unwrap().admit(record).await.unwrap()
    };
    admit("a".to_owned()).await;
    let mut behind = server.connection().await;
    let mut confirmed_by = async |standbys: &str| {
        let change = format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'");
        behind.execute(sqlx::raw_sql(AssertSqlSafe(change))).await.unwrap();
        behind.execute("SELECT pg_reload_conf()").await.unwrap();
    };
    confirmed_by("nobody").await;
    let mut other = server.connection().await;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let waiting = async {
        // The server takes note of its new settings a little later.
        for number in 0.. {
            admit(number.to_string()).await;
        }
    };
    let begun = async {
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut other).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        store.inbox().unwrap().begin(&chat("a"), Fence::new(1), MINUTE).await.unwrap()
    };
    let begun = tokio::select! {
        () = waiting => unreachable!("it never ends"),
        begun = begun => begun,
    };
    confirmed_by("").await;
    assert!(matches!(begun, Begun::Record(_)), "{begun:?}");
}

/// G7: an inbox tells that its server confirms what may be lost after all.
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_tells_what_endangers_it() {
    let careless = ["fsync=off", "synchronous_commit=off"];
    let Some(server) = PrivateServer::start(&careless).await else { return support::skip() };
    let store = PostgresStore::connect(server.url()).await.unwrap();
    let dangers = store.inbox().unwrap().dangers().await.unwrap();
    let [first, second] = &dangers[..] else { panic!("{dangers:?}") };
    assert!(first.contains("fsync") && second.contains("synchronous_commit"), "{dangers:?}");
}
