//! What does not fit is refused at the start, with what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use botmesh_core::id::Fence;
use botmesh_core::store::{CheckpointStore as _, Collection, DocumentStore as _, StoreError, Swap};
use botmesh_postgres_store::{PostgresStore, PostgresStoreBuilder};
use sqlx::{AssertSqlSafe, Executor as _};
use support::server::PrivateServer;
use support::{body, chat};

async fn refusal(builder: PostgresStoreBuilder) -> String {
    match builder.await {
        Err(StoreError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Credentials, names and rights that do not fit.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_enter_is_told_why() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let mut behind = server.connection().await;
    behind
        .execute(sqlx::raw_sql(
            "CREATE ROLE bot LOGIN PASSWORD 'right'; REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        ))
        .await
        .unwrap();
    behind.execute("CREATE DATABASE bots").await.unwrap();
    let rules = "host all postgres all trust\nhost all bot all scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    behind.execute("SELECT pg_reload_conf()").await.unwrap();

    let at = |user: &str, database: &str| {
        PostgresStore::connect(format!("postgres://{user}@127.0.0.1:{}/{database}", server.port))
    };
    let text = refusal(at("bot:wrong", "bots")).await;
    assert!(text.contains("correct the user and the password in the URL"), "{text}");
    let text = refusal(at("nobody", "bots")).await;
    assert!(text.contains("pg_hba.conf"), "{text}");
    let text = refusal(at("postgres", "absent")).await;
    assert!(text.contains("\"absent\"") && text.contains("name another"), "{text}");
    let text = refusal(at("bot:right", "postgres")).await;
    assert!(text.contains("permission denied for schema public"), "{text}");
    let text = refusal(at("bot:right", "bots").schema("shop")).await;
    assert!(text.contains("permission denied for database bots"), "{text}");

    // Tables that somebody else has made need no right to make any.
    at("postgres", "postgres").await.unwrap();
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO bot";
    behind.execute(grant).await.unwrap();
    let store = at("", "postgres").credentials("bot", "right").await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
}

/// B7: a standby and a database that takes no writes are refused, also later.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_and_a_read_only_database_are_refused() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let patience = std::time::Duration::from_millis(200);
    let store = PostgresStore::connect(server.url()).patience(patience).await.unwrap();
    let mut behind = server.connection().await;
    let lock = "ALTER DATABASE postgres SET default_transaction_read_only = on";
    behind.execute(lock).await.unwrap();
    let text = refusal(PostgresStore::connect(server.url())).await;
    assert!(text.contains("standby or read-only"), "{text}");
    behind
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'botmesh'",
        )
        .await
        .unwrap();
    assert_eq!(store.load_document(Collection::Chats, "a").await.unwrap(), None);
    let error = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap_err();
    assert!(error.to_string().contains("standby or read-only"), "{error}");

    server.kill();
    std::fs::write(server.data().join("standby.signal"), "").unwrap();
    server.start_again().await;
    let text = refusal(PostgresStore::connect(server.url())).await;
    assert!(text.contains("standby or read-only"), "{text}");
}

/// B5: a schema of a newer release is refused with a clear error, and left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    open.clone().prefix(&prefix).await.unwrap();
    let mut behind = support::plain(&url).await;
    let newer = format!("UPDATE {prefix}meta SET value = 999 WHERE name = 'schema'");
    behind.execute(sqlx::raw_sql(AssertSqlSafe(newer))).await.unwrap();
    let error = open.clone().prefix(&prefix).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("upgrade the program"), "{error}");
    open.prefix(support::prefix()).await.unwrap();
}

/// B5: many who start at once make one schema, also through a pooler.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_make_one_schema_at_once() {
    for open in [support::direct(), support::pooled()] {
        let Some(open) = open else { return support::skip() };
        let schema = support::prefix();
        let opening: Vec<_> =
            (0..8).map(|_| tokio::spawn(open.clone().schema(&schema).into_future())).collect();
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

/// B4: a key of a kibibyte is kept; one that no index can hold is refused, and nothing is cut.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_kept_whole_or_refused() {
    let Some(open) = support::direct() else { return support::skip() };
    let store = open.prefix(support::prefix()).await.unwrap();
    let users = Collection::Users;
    let (long, other) = ("😀".repeat(256), format!("{}x", "😀".repeat(255)));
    for key in [&long, &other] {
        let saved = store.save_document_if(users, key, key, None).await.unwrap();
        assert_ne!(saved, Swap::Refused);
    }
    for key in [&long, &other] {
        let read = store.load_document(users, key).await.unwrap();
        assert_eq!(read.map(|read| read.body), Some(key.clone()));
    }
    let mut number = 1_u64;
    let mixed = std::iter::repeat_with(|| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        format!("{number:016x}")
    });
    let huge: String = mixed.take(1000).collect();
    let error = store.save_document_if(users, &huge, "text", None).await.unwrap_err();
    assert!(error.to_string().contains("the key is too long"), "{error}");
    assert_eq!(store.load_document(users, &huge).await.unwrap(), None);
}

/// B4: the encoding of the database does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_encoding_keeps_everything() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let make = "CREATE DATABASE old TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'";
    server.connection().await.execute(make).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/old", server.port);
    let store = PostgresStore::connect(url).await.unwrap();
    let text = "😀 \0 ü";
    let saved = store.save_document_if(Collection::Users, text, text, None).await.unwrap();
    assert_ne!(saved, Swap::Refused);
    let read = store.load_document(Collection::Users, text).await.unwrap();
    assert_eq!(read.map(|read| read.body), Some(text.to_owned()));
}

/// The connection is encrypted, and a server that another authority has certified is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_server_needs_the_right_certificate() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (pem, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let settings = ["ssl=on", "ssl_cert_file=../cert.pem", "ssl_key_file=../key.pem"];
    let files = [("cert.pem", &*pem), ("key.pem", &*key)];
    let Some(server) = PrivateServer::start_with(&settings, &files).await else {
        return support::skip();
    };
    let url = format!("postgres://postgres@localhost:{}/postgres", server.port);
    let store = PostgresStore::connect(&url).root_certificate(pem).await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
    let mut behind = server.connection().await;
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'botmesh'";
    let encrypted: i64 = sqlx::query_scalar(encrypted).fetch_one(&mut behind).await.unwrap();
    assert!(encrypted > 0, "nothing is encrypted");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let text = refusal(PostgresStore::connect(&url).root_certificate(other.cert.pem())).await;
    assert!(text.contains("root_certificate"), "{text}");
}
