//! What the store does when its server goes away.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, Collection, ConditionalCheckpointStore, DocumentStore as _, Store as _,
    StoreError, Swap,
};
use botmesh_mysql_store::MysqlStore;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};
use support::server::PrivateServer;
use support::{body, chat};

const CHATS: Collection = Collection::Chats;

fn conditional(store: &MysqlStore) -> &dyn ConditionalCheckpointStore {
    store.conditional_checkpoints().unwrap()
}

/// B7: while the server is away, calls fail with a typed error after a bounded time; once it is
/// back, the same store works.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_recovers_by_itself_when_its_server_is_back() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let patience = Duration::from_millis(300);
    let store = MysqlStore::connect(server.url()).patience(patience).await.unwrap();
    assert!(store.is_durable(), "the server waits for its disk");
    let saved = store.save_document_if(CHATS, "a", "1", None).await.unwrap();
    let Swap::Applied(first) = saved else { panic!("{saved:?}") };
    let chat = chat("a");
    let checkpoint = store.set_checkpoint(&chat, body("1"), Fence::new(7)).await.unwrap();

    for _ in 0..2 {
        server.kill();
        let begun = Instant::now();
        let error = store.load_document(CHATS, "a").await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(error.is_transient());
        assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());
        server.start_again().await;
        let read = store.load_document(CHATS, "a").await.unwrap();
        assert_eq!(read.map(|read| (read.revision, read.body)), Some((first, "1".to_owned())));
    }
    let swap = store.save_document_if(CHATS, "a", "2", Some(first)).await.unwrap();
    assert_ne!(swap, Swap::Refused, "the revision from before the restart");
    let late =
        conditional(&store).set_checkpoint_if(&chat, body("late"), Some(checkpoint), Fence::new(6));
    assert_eq!(late.await.unwrap(), Swap::Refused, "a fence from before the restart");
}

/// B7: a call that begins while the server is away or still starting succeeds if it comes back in
/// time.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_a_server_that_comes_back() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let patience = Duration::from_secs(60);
    MysqlStore::connect(server.url()).await.unwrap();
    server.kill();
    let store = MysqlStore::connect(server.url()).patience(patience).build().unwrap();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.save_document_if(CHATS, "a", "1", None).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.start_silently();
    assert_ne!(writing.await.unwrap().unwrap(), Swap::Refused);
}

/// B7: a connection that stands still counts as broken after the time for an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_given_up_and_taken_up_again() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let limit = Duration::from_millis(500);
    let builder = MysqlStore::connect(server.url()).patience(limit).response_timeout(limit);
    let store = builder.await.unwrap();
    server.freeze();
    let begun = Instant::now();
    let error = store.load_document(CHATS, "a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}", begun.elapsed());
    server.thaw();
    let patient = MysqlStore::connect(server.url()).build().unwrap();
    assert_eq!(patient.load_document(CHATS, "a").await.unwrap(), None);
    assert_eq!(store.load_document(CHATS, "a").await.unwrap(), None);
}

/// B7: who finds no free connection is told so after a bounded time, and the next one gets it.
#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_a_typed_error_after_a_bounded_wait() {
    let Some(builder) = support::direct() else { return support::skip() };
    let prefix = support::prefix();
    let patience = Duration::from_millis(300);
    let store = builder.prefix(&prefix).max_connections(1).patience(patience).await.unwrap();
    let saved = store.save_document_if(CHATS, "held", "1", None).await.unwrap();
    let Swap::Applied(revision) = saved else { panic!("{saved:?}") };
    let mut other = support::plain(&support::url().unwrap()).await;
    let lock = format!("BEGIN; SELECT * FROM {prefix}documents FOR UPDATE");
    other.execute(sqlx::raw_sql(AssertSqlSafe(lock))).await.unwrap();
    let holding = tokio::spawn({
        let store = store.clone();
        async move { store.save_document_if(CHATS, "held", "2", Some(revision)).await }
    });
    support::until_running(&format!("UPDATE {prefix}documents")).await;
    let error = store.load_document(CHATS, "other").await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { waited, .. } if waited == patience), "{error:?}");
    assert!(error.is_transient());
    other.execute("ROLLBACK").await.unwrap();
    assert_ne!(holding.await.unwrap().unwrap(), Swap::Refused);
    assert_eq!(store.load_document(CHATS, "other").await.unwrap(), None);
}

/// B7: who waits in vain for a row that another transaction holds is told so, and nothing was
/// written.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_stays_locked_is_a_typed_error_after_a_bounded_wait() {
    let Some(builder) = support::direct() else { return support::skip() };
    let prefix = support::prefix();
    let (response, patience) = (Duration::from_secs(2), Duration::from_secs(3));
    let builder = builder.prefix(&prefix).response_timeout(response).patience(patience);
    let store = builder.await.unwrap();
    let saved = store.save_document_if(CHATS, "held", "1", None).await.unwrap();
    let Swap::Applied(revision) = saved else { panic!("{saved:?}") };
    let mut other = support::plain(&support::url().unwrap()).await;
    let lock = format!("BEGIN; SELECT * FROM {prefix}documents FOR UPDATE");
    other.execute(sqlx::raw_sql(AssertSqlSafe(lock))).await.unwrap();
    let begun = Instant::now();
    let error = store.save_document_if(CHATS, "held", "2", Some(revision)).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}", begun.elapsed());
    other.execute("ROLLBACK").await.unwrap();
    let read = store.load_document(CHATS, "held").await.unwrap().unwrap();
    assert_eq!((read.revision, &*read.body), (revision, "1"));
}

/// B2: a write that the server undid, for the sake of another one, is tried again as a whole, and
/// not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlocks_are_tried_again_a_few_times() {
    let Some(builder) = support::direct() else { return support::skip() };
    let prefix = support::prefix();
    let store = builder.prefix(&prefix).await.unwrap();
    let mut behind = support::plain(&support::url().unwrap()).await;
    // A table that remembers what was undone.
    let counter =
        "CREATE TABLE {p}tries (n INTEGER) ENGINE = MEMORY; INSERT INTO {p}tries VALUES (0)";
    let deadlock = "CREATE TRIGGER {p}tries BEFORE INSERT ON {p}documents FOR EACH ROW BEGIN
            UPDATE {p}tries SET n = n + 1;
            SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found';
        END";
    let mut run = async |text: &str| {
        let text = AssertSqlSafe(text.replace("{p}", &prefix));
        behind.execute(sqlx::raw_sql(text)).await.unwrap();
    };
    run(counter).await;
    run(deadlock).await;
    let tries = format!("SELECT n FROM {prefix}tries");
    let tries = || sqlx::query_scalar::<_, i32>(AssertSqlSafe(tries.clone()));
    let mut other = support::plain(&support::url().unwrap()).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.save_document_if(CHATS, "a", "1", None).await }
    });
    while tries().fetch_one(&mut other).await.unwrap() < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    run("DROP TRIGGER {p}tries").await;
    assert_ne!(writing.await.unwrap().unwrap(), Swap::Refused);

    run("UPDATE {p}tries SET n = 0").await;
    run(deadlock).await;
    let error = store.save_document_if(CHATS, "b", "1", None).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert_eq!(tries().fetch_one(&mut other).await.unwrap(), 10);
}

/// B7: a server without a free connection is told so after a bounded time.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_free_connections_is_a_typed_error() {
    let Some(server) = PrivateServer::start(&["--max-connections=10"]).await else {
        return support::skip();
    };
    let url = server.url();
    let patience = Duration::from_millis(300);
    let store = MysqlStore::connect(&url).patience(patience).await.unwrap();
    store.close();
    let mut all = Vec::new();
    while let Ok(connection) = MySqlConnection::connect(&url).await {
        all.push(connection);
    }
    let store = MysqlStore::connect(&url).patience(patience).build().unwrap();
    let error = store.load_document(CHATS, "a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(format!("{error:?}").contains("Too many connections"), "{error:?}");
    for connection in all {
        connection.close().await.unwrap();
    }
    let patient = MysqlStore::connect(&url).build().unwrap();
    assert_eq!(patient.load_document(CHATS, "a").await.unwrap(), None);
    assert_eq!(store.load_document(CHATS, "a").await.unwrap(), None);
}

/// B7: a server that has no room left says so, keeps what it has, and goes on when there is room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_a_typed_error_and_loses_nothing() {
    let limited =
        ["--innodb-file-per-table=0", "--innodb-data-file-path=ibdata1:12M:autoextend:max:24M"];
    let Some(server) = PrivateServer::start(&limited).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let text = "x".repeat(1 << 20);
    let mut kept = Vec::new();
    let error = loop {
        let name = kept.len().to_string();
        match store.save_document_if(CHATS, &name, &text, None).await {
            Ok(Swap::Applied(revision)) => kept.push(revision),
            Ok(refused) => panic!("{refused:?}"),
            Err(error) => break error,
        }
        assert!(kept.len() < 64, "it never gets full");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let absent = store.load_document(CHATS, &kept.len().to_string()).await.unwrap();
    assert_eq!(absent, None, "a write that failed");
    for (name, revision) in kept.iter().enumerate() {
        let read = store.load_document(CHATS, &name.to_string()).await.unwrap().unwrap();
        assert_eq!((read.revision, read.body.len()), (*revision, text.len()));
    }
}

/// B2, B7: connections that are cut in the middle of work change no outcome: what was told as
/// applied is there, what was told as refused is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_make_no_outcome_untrue() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let saved = store.save_document_if(CHATS, "n", "0", None).await.unwrap();
    assert_ne!(saved, Swap::Refused);
    let (ended, told, unknown) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let shared = Arc::new((ended, told, unknown));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let (store, shared) = (store.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                let (ended, told, unknown) = &*shared;
                while !ended.load(Ordering::Relaxed) {
                    // A read is repeated until it is answered.
                    let read = store.load_document(CHATS, "n").await.unwrap().unwrap();
                    let next = (read.body.parse::<u64>().unwrap() + 1).to_string();
                    match store.save_document_if(CHATS, "n", &next, Some(read.revision)).await {
                        Ok(Swap::Applied(_)) => told.fetch_add(1, Ordering::Relaxed),
                        Ok(Swap::Refused) => 0,
                        Err(StoreError::Unavailable { .. }) => {
                            unknown.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(error) => panic!("{error:?}"),
                    };
                }
            })
        })
        .collect();
    let mut other = server.connection().await;
    let mut cuts = 0;
    while cuts < 40 || shared.1.load(Ordering::Relaxed) < 200 {
        tokio::time::sleep(Duration::from_millis(15)).await;
        cuts += support::cut(&mut other, "bot").await;
    }
    shared.0.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let (told, unknown) = (shared.1.load(Ordering::Relaxed), shared.2.load(Ordering::Relaxed));
    let read = store.load_document(CHATS, "n").await.unwrap().unwrap();
    let reached: u64 = read.body.parse().unwrap();
    assert!(
        (told..=told + unknown).contains(&reached),
        "{reached} after {told} writes and {unknown} of unknown outcome"
    );
    other.close().await.unwrap();
}

/// B2: a caller that gives up in the middle of a call disturbs no other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_disturbs_nobody() {
    {
        let Some(builder) = support::direct() else { return support::skip() };
        let store = builder.prefix(support::prefix()).await.unwrap();
        let (given_up, kept) = (chat("given up"), chat("kept"));
        for round in 0..100_u64 {
            let time = Duration::from_micros(round * 20);
            let text = round.to_string();
            let give_up = tokio::time::timeout(
                time,
                store.set_checkpoint(&given_up, body("x"), Fence::new(1)),
            );
            let (_, ()) = tokio::join!(give_up, async {
                let write = store.set_checkpoint(&kept, body(&text), Fence::new(1));
                let revision = write.await.unwrap();
                let read = store.load_checkpoint(&kept).await.unwrap().unwrap();
                assert_eq!((read.revision, read.body), (revision, text.clone()));
            });
        }
    }
}
