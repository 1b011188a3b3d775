//! What a coordinator tells when the server or its set-up does not fit.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::coordination::{CoordinationError, Coordinator as _, CoordinatorSettings};
use botmesh_postgres_store::{Pooler, PostgresCoordinator, PostgresStore, PostgresStoreBuilder};
use botmesh_test_support::replica::{LEASE, acquire, chat, take};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};
use support::replica::replica_with;
use support::server::PrivateServer;

async fn run(connection: &mut PgConnection, text: &str) {
    connection.execute(sqlx::raw_sql(AssertSqlSafe(text.to_owned()))).await.unwrap();
}

/// Why a coordinator does not start. Nothing that it says may hold the password of these tests.
async fn refusal(store: PostgresStoreBuilder) -> String {
    refused(replica_with(store, LEASE)).await
}

async fn refused(coordinator: PostgresCoordinator) -> String {
    let text = match coordinator.start().await {
        Err(error @ CoordinationError::Unfit { .. }) => format!("{error} {error:?}"),
        other => panic!("not refused: {other:?}"),
    };
    let text = format!("{text} {coordinator:?}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(coordinator.reserve(&chat("k")).await.is_err());
    text
}

/// C16: credentials, databases and rights that do not fit are refused at the start with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_coordinate_is_told_why() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let mut behind = server.connection().await;
    let roles =
        "CREATE ROLE bot LOGIN PASSWORD 'secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC";
    run(&mut behind, roles).await;
    let rules = "host all postgres all trust\nhost all bot all scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    run(&mut behind, "SELECT pg_reload_conf()").await;
    let at = |user: &str, database: &str| {
        PostgresStore::connect(format!("postgres://{user}@127.0.0.1:{}/{database}", server.port))
    };
    let text = refusal(at("bot:hunter2", "postgres")).await;
    assert!(text.contains("correct the user and the password in the URL"), "{text}");
    let text = refusal(at("postgres", "absent")).await;
    assert!(text.contains("\"absent\"") && text.contains("name another"), "{text}");
    let text = refusal(at("bot:secret", "postgres")).await;
    assert!(text.contains("permission denied") && text.contains("what the README lists"), "{text}");

    // The tables are there, but may not be used.
    let owner = replica_with(at("postgres", "postgres"), LEASE);
    owner.start().await.unwrap();
    let read = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO bot";
    run(&mut behind, read).await;
    let text = refusal(at("bot:secret", "postgres")).await;
    assert!(text.contains("permission denied for table botmesh_coordination_"), "{text}");
    // They need no more than this.
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO bot";
    run(&mut behind, grant).await;
    let coordinator = replica_with(at("bot:secret", "postgres"), LEASE);
    coordinator.start().await.unwrap();
    take(&coordinator, "k").await.release().await.unwrap();
}

/// C16: a server that is too old is refused. An old one cannot be had, so this one says that it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_refused() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let mut behind = server.connection().await;
    run(
        &mut behind,
        "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql AS
            $$ SELECT CASE $1 WHEN 'server_version_num' THEN '130022'
                ELSE pg_catalog.current_setting($1) END $$;
        ALTER DATABASE postgres SET search_path = old, pg_catalog, public",
    )
    .await;
    let text = refusal(PostgresStore::connect(server.url())).await;
    assert!(text.contains("version is 13: upgrade it to PostgreSQL 14"), "{text}");
}

/// C16: a standby and a database that takes no writes are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_and_a_read_only_database_do_not_coordinate() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let mut behind = server.connection().await;
    run(&mut behind, "ALTER DATABASE postgres SET default_transaction_read_only = on").await;
    let text = refusal(PostgresStore::connect(server.url())).await;
    assert!(text.contains("standby or read-only: give the URL of the primary"), "{text}");
    server.stop();
    std::fs::write(server.data().join("standby.signal"), "").unwrap();
    server.start_again().await;
    let text = refusal(PostgresStore::connect(server.url())).await;
    assert!(text.contains("standby or read-only: give the URL of the primary"), "{text}");
}

/// C16: tables that a newer release made are refused and left as they are; the store's own, which
/// that release did not change, work on.
#[tokio::test(flavor = "multi_thread")]
async fn newer_tables_are_refused() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let open = open.prefix(&prefix);
    let coordinator = replica_with(open.clone(), LEASE);
    coordinator.start().await.unwrap();
    coordinator.stop().await.unwrap();
    let mut behind = support::plain(&url).await;
    let newer = format!("UPDATE {prefix}meta SET value = 999 WHERE name LIKE '%coordination%'");
    run(&mut behind, &newer).await;
    let text = refusal(open.clone()).await;
    assert!(text.contains("999") && text.contains("upgrade the program"), "{text}");
    open.await.unwrap();
}

/// C4: a server that is away is told as such within a bounded time, and a later start succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_told_as_such() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    server.kill();
    let patience = Duration::from_millis(300);
    let store = PostgresStore::connect(server.url()).patience(patience);
    let coordinator = replica_with(store, LEASE);
    let begun = Instant::now();
    let refused = coordinator.start().await;
    assert!(matches!(refused, Err(CoordinationError::Unavailable { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
    server.start_again().await;
    coordinator.start().await.unwrap();
    take(&coordinator, "k").await.release().await.unwrap();
    coordinator.stop().await.unwrap();
}

/// C14: where listening is to go directly, a URL that leads to a pooler is refused: nothing would
/// ever be heard there.
#[tokio::test(flavor = "multi_thread")]
async fn a_direct_url_that_leads_to_a_pooler_is_refused() {
    let (Some(pooled), Some(pooler)) = (support::pooled(), support::pooler_url()) else {
        return support::skip();
    };
    let pooled = pooled.prefix(support::prefix());
    let through = |direct: &str| {
        let settings = CoordinatorSettings::builder().lease(LEASE).build().unwrap();
        let coordinator = PostgresCoordinator::through(pooled.clone()).direct(direct);
        coordinator.settings(settings).build().unwrap()
    };
    let text = refused(through(&pooler)).await;
    assert!(text.contains("leads to a pooler") && text.contains("the server itself"), "{text}");
    // Without it tickets poll there, and with the right one they are woken.
    for coordinator in [replica_with(pooled.clone(), LEASE), through(&support::url().unwrap())] {
        coordinator.start().await.unwrap();
        take(&coordinator, "k").await.release().await.unwrap();
        coordinator.stop().await.unwrap();
    }
}

/// C4: who finds no free connection is told so after a bounded time, and nothing is lost: whoever
/// holds a turn keeps it, and the next reservation gets its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_is_told_as_such() {
    let Some(open) = support::direct() else { return support::skip() };
    let prefix = support::prefix();
    let patience = Duration::from_millis(200);
    let store = open.prefix(&prefix).max_connections(1).pooler(Pooler::Absent).patience(patience);
    let coordinator = replica_with(store, LEASE);
    coordinator.start().await.unwrap();
    let held = take(&coordinator, "held").await;
    let mut other = support::plain(&support::url().unwrap()).await;
    run(&mut other, &format!("BEGIN; SELECT * FROM {prefix}coordination_turns FOR UPDATE")).await;
    // Each that waits for the row has the only connection meanwhile.
    let stuck = async { coordinator.reserve(&chat("held")).await.map(drop) };
    let begun = Instant::now();
    let other_chat = chat("other");
    let mut watching = support::plain(&support::url().unwrap()).await;
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%{prefix}coordination%'"
    );
    let refused = async {
        let waits = || sqlx::query_scalar::<_, i64>(AssertSqlSafe(waits.clone()));
        while waits().fetch_one(&mut watching).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        coordinator.reserve(&other_chat).await
    };
    let (stuck, error) = tokio::join!(stuck, refused);
    let error = error.unwrap_err();
    assert!(stuck.is_err(), "the row was locked all the time");
    let text = format!("{error:?}");
    assert!(matches!(error, CoordinationError::Unavailable { .. }), "{text}");
    assert!(text.contains("no connection became free within 200ms"), "{text}");
    assert!(begun.elapsed() < LEASE * 4, "after {:?}", begun.elapsed());
    held.check().unwrap();
    run(&mut other, "ROLLBACK").await;
    let ticket = coordinator.reserve(&other_chat).await.unwrap();
    acquire(&coordinator, ticket).await.release().await.unwrap();
    held.release().await.unwrap();
}
