//! What does not fit is refused at the start, with what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, Collection, DocumentStore as _, LockStore, Store as _, StoreError, Swap,
};
use botmesh_mysql_store::{MysqlStore, MysqlStoreBuilder};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _};
use support::server::PrivateServer;
use support::{body, chat};

async fn refusal(builder: MysqlStoreBuilder) -> String {
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
    let users = "CREATE USER guest@'%' IDENTIFIED BY 'right'; GRANT SELECT ON bots.* TO guest@'%';
        CREATE DATABASE others";
    behind.execute(sqlx::raw_sql(users)).await.unwrap();

    let at = |user: &str, database: &str| {
        MysqlStore::connect(format!("mysql://{user}@127.0.0.1:{}/{database}", server.port))
    };
    for user in ["guest:wrong", "nobody"] {
        let text = refusal(at(user, "bots")).await;
        assert!(text.contains("correct the user and the password in the URL"), "{text}");
    }
    let text = refusal(at("root", "absent")).await;
    assert!(text.contains("'absent'") && text.contains("name another"), "{text}");
    let text = refusal(at("guest:right", "others")).await;
    assert!(text.contains("others") && text.contains("grant this user"), "{text}");
    let text = refusal(at("guest:right", "bots")).await;
    assert!(text.contains("CREATE command denied") && text.contains("grant this user"), "{text}");

    // Tables that somebody else has made need no right to make any.
    at("root", "bots").await.unwrap();
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON bots.* TO guest@'%'";
    behind.execute(grant).await.unwrap();
    let store = at("", "bots").credentials("guest", "right").await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
}

/// B7: a server that takes no writes, as a replica, is refused, also later.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_is_refused() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    support::user(&server, "guest", "ALL PRIVILEGES ON bots.*").await;
    let url = server.url().replace("bot@", "guest@");
    let patience = Duration::from_millis(200);
    let store = MysqlStore::connect(&url).patience(patience).await.unwrap();
    let mut behind = server.connection().await;
    behind.execute("SET GLOBAL read_only = 1").await.unwrap();
    // Also for who may write all the same.
    for url in [&url, &server.url()] {
        let text = refusal(MysqlStore::connect(url)).await;
        assert!(text.contains("replica or read-only"), "{text}");
    }
    assert_eq!(store.load_document(Collection::Chats, "a").await.unwrap(), None);
    let error = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("replica or read-only"), "{error}");
    behind.execute("SET GLOBAL read_only = 0").await.unwrap();
    let saved = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap();
    assert_ne!(saved, Swap::Refused);
}

/// B4: a shared pool on which texts would be cut is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_pool_with_lax_connections_is_refused() {
    let Some(url) = support::url() else { return support::skip() };
    for (setting, complaint) in [("sql_mode = ''", "sql_mode"), ("autocommit = 0", "autocommit")] {
        let pool = MySqlPoolOptions::new().after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute(AssertSqlSafe(format!("SET SESSION {setting}"))).await.map(drop)
            })
        });
        let pool = pool.max_connections(2).connect_lazy(&url).unwrap();
        let text = refusal(MysqlStore::over(pool).prefix(support::prefix())).await;
        assert!(text.contains(complaint) && text.contains("shared pool"), "{text}");
    }
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

/// B5: many who start at once make one schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_make_one_schema_at_once() {
    let Some(open) = support::direct() else { return support::skip() };
    let open = open.prefix(support::prefix());
    let opening: Vec<_> = (0..8).map(|_| tokio::spawn(open.clone().into_future())).collect();
    let mut stores = Vec::new();
    for store in opening {
        stores.push(store.await.unwrap().unwrap());
    }
    stores[0].set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
    for store in &stores {
        assert_eq!(store.load_checkpoint(&chat("a")).await.unwrap().unwrap().body, "text");
    }
}

/// B5: a migration that ended in the middle, of which the server has kept what was done, is brought
/// to its end by the next start, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_was_cut_off_is_finished() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let open = open.prefix(&prefix);
    let store = open.clone().await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
    let mut behind = support::plain(&url).await;
    for lost in ["DROP TABLE {p}locks", "DROP TABLE {p}documents, {p}locks", "SELECT 1"] {
        let undo = format!("DELETE FROM {prefix}meta WHERE name = 'schema'; {lost}");
        let undo = undo.replace("{p}", &prefix);
        behind.execute(sqlx::raw_sql(AssertSqlSafe(undo))).await.unwrap();
        let store = open.clone().await.unwrap();
        assert_eq!(store.load_checkpoint(&chat("a")).await.unwrap().unwrap().body, "text");
        let locks: &dyn LockStore = store.locks().unwrap();
        let lock = locks.acquire_lock_fenced("a", Duration::from_millis(1)).await.unwrap();
        assert!(lock.is_some());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// B4: a key of a kibibyte is kept, NUL and all; one that no index can hold is refused, and nothing
/// is cut.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_kept_whole_or_refused() {
    let Some(open) = support::direct() else { return support::skip() };
    let store = open.prefix(support::prefix()).await.unwrap();
    let users = Collection::Users;
    let (long, other) = ("😀".repeat(256), format!("{}x", "😀".repeat(255)));
    let (longest, padded) = ("x".repeat(3000), format!("{}  ", "x".repeat(2998)));
    let keys = [&*long, &other, &longest, &padded, "a\0b", "a\0", "a", "a ", "A", "á"];
    for key in keys {
        let saved = store.save_document_if(users, key, key, None).await.unwrap();
        assert_ne!(saved, Swap::Refused, "{key:?} is taken for another");
    }
    for key in keys {
        let read = store.load_document(users, key).await.unwrap();
        assert_eq!(read.map(|read| read.body), Some(key.to_owned()));
    }
    let huge = "x".repeat(3001);
    let error = store.save_document_if(users, &huge, "text", None).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { what: "key", .. }), "{error:?}");
    let error = store.load_document(users, &huge).await.unwrap_err();
    assert!(error.to_string().contains("at most 3000"), "{error}");
    let locks = store.locks().unwrap();
    let error = locks.acquire_lock_fenced(&huge, Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error:?}");
}

/// B4: a text that is larger than what the server takes at once is refused with what to do, and
/// what was there before stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_larger_than_the_server_takes_is_refused() {
    let Some(server) = PrivateServer::start(&["--max-allowed-packet=2M"]).await else {
        return support::skip();
    };
    let patience = Duration::from_millis(500);
    let store = MysqlStore::connect(server.url()).patience(patience).await.unwrap();
    let saved = store.save_document_if(Collection::Users, "a", "small", None).await.unwrap();
    let Swap::Applied(revision) = saved else { panic!("{saved:?}") };
    let large = "x".repeat(3 << 20);
    let write = store.save_document_if(Collection::Users, "a", &large, Some(revision));
    let error = write.await.unwrap_err();
    assert!(error.to_string().contains("max_allowed_packet"), "{error:?}");
    let read = store.load_document(Collection::Users, "a").await.unwrap().unwrap();
    assert_eq!((read.revision, &*read.body), (revision, "small"));
}

/// B4: the encoding and the collation of the database do not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_collation_keeps_everything_apart() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let make = "CREATE DATABASE old CHARACTER SET latin1 COLLATE latin1_german1_ci";
    server.connection().await.execute(make).await.unwrap();
    let store = MysqlStore::connect(server.url().replace("/bots", "/old")).await.unwrap();
    for text in ["😀 \0 ü", "Ü", "ü", "u", "ue", "ss", "ß"] {
        let saved = store.save_document_if(Collection::Users, text, text, None).await.unwrap();
        assert_ne!(saved, Swap::Refused, "{text:?} is taken for another");
        let read = store.load_document(Collection::Users, text).await.unwrap();
        assert_eq!(read.map(|read| read.body), Some(text.to_owned()));
    }
}

/// The connection is encrypted, and a server that another authority has certified is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_server_needs_the_right_certificate() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (pem, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let settings = ["--ssl-cert={directory}/cert.pem", "--ssl-key={directory}/key.pem"];
    let files = [("cert.pem", &*pem), ("key.pem", &*key)];
    let Some(server) = PrivateServer::start_with(&settings, &files).await else {
        return support::skip();
    };
    let url = format!("mysql://bot@localhost:{}/bots", server.port);
    let store = MysqlStore::connect(&url).root_certificate(pem).await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
    let mut behind = server.connection().await;
    let encrypted = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status
        WHERE variable_name = 'Ssl_finished_accepts'";
    let encrypted: i64 = sqlx::query_scalar(encrypted).fetch_one(&mut behind).await.unwrap();
    assert!(encrypted > 0, "nothing is encrypted");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let text = refusal(MysqlStore::connect(&url).root_certificate(other.cert.pem())).await;
    assert!(text.contains("root_certificate"), "{text}");
}
