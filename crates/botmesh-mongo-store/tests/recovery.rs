//! What the store does when its server goes away, or answers late or not at all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::id::Fence;
use botmesh_core::store::{
    CheckpointStore as _, Collection, ConditionalCheckpointStore, DocumentStore as _,
    LockStore as _, Store as _, StoreError, Swap,
};
use botmesh_mongo_store::MongoStore;
use mongodb::bson::{Document, doc};
use support::server::PrivateServer;
use support::{body, chat, patient};

const CHATS: Collection = Collection::Chats;

/// A server that fails when it is told to.
const FAULTY: &[&str] = &["--enable-test-commands"];

fn conditional(store: &MongoStore) -> &dyn ConditionalCheckpointStore {
    store.conditional_checkpoints().unwrap()
}

/// Makes the server do this with the next writes of the store.
async fn disturb(server: &PrivateServer, mode: Document, data: Document) {
    let mut told = doc! { "failCommands": ["findAndModify"], "appName": "botmesh" };
    told.extend(data);
    let command = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": told };
    server.client().await.database("admin").run_command(command).await.unwrap();
}

/// B7: while the server is away, calls fail with a typed error after a bounded time; once it is
/// back, the same store works.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_recovers_by_itself_when_its_server_is_back() {
    let Some(mut server) = PrivateServer::start(&["--sync-on-commit"]).await else {
        return support::skip();
    };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    assert!(store.is_durable(), "the server keeps its data on a disk");
    let saved = store.save_document_if(CHATS, "a", "1", None).await.unwrap();
    let Swap::Applied(first) = saved else { panic!("{saved:?}") };
    let chat = chat("a");
    let checkpoint = store.set_checkpoint(&chat, body("1"), Fence::new(7)).await.unwrap();

    let hasty = MongoStore::connect(server.url()).patience(Duration::from_millis(300));
    let hasty = hasty.build().unwrap();
    hasty.load_document(CHATS, "a").await.unwrap();
    server.kill();
    let begun = Instant::now();
    let error = hasty.load_document(CHATS, "a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.is_transient());
    assert!(begun.elapsed() < Duration::from_secs(15), "after {:?}", begun.elapsed());
    server.start_again().await;
    let read = store.load_document(CHATS, "a").await.unwrap();
    assert_eq!(read.map(|read| (read.revision, read.body)), Some((first, "1".to_owned())));
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
    let Some(mut server) = PrivateServer::prepare(&[]) else { return support::skip() };
    let store = patient(MongoStore::connect(server.url())).build().unwrap();
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
    patient(MongoStore::connect(server.url())).await.unwrap();
    let limit = Duration::from_millis(500);
    let builder = MongoStore::connect(server.url()).patience(limit).response_timeout(limit);
    let store = builder.build().unwrap();
    server.signal("-STOP");
    let begun = Instant::now();
    let error = store.load_document(CHATS, "a").await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "after {:?}", begun.elapsed());
    server.signal("-CONT");
    let patient = patient(MongoStore::connect(server.url())).build().unwrap();
    assert_eq!(patient.load_document(CHATS, "a").await.unwrap(), None);
}

/// B7: who finds no free connection is told so after a bounded time, and the next one gets it.
#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_a_typed_error_after_a_bounded_wait() {
    let Some(server) = PrivateServer::start(FAULTY).await else { return support::skip() };
    patient(MongoStore::connect(server.url())).await.unwrap();
    let patience = Duration::from_millis(300);
    let builder = patient(MongoStore::connect(server.url())).max_connections(1);
    let store = builder.patience(patience).build().unwrap();
    let held = doc! { "blockConnection": true, "blockTimeMS": 5000 };
    disturb(&server, doc! { "times": 1 }, held).await;
    let holding = tokio::spawn({
        let store = store.clone();
        async move { store.save_document_if(CHATS, "held", "1", None).await }
    });
    let error = loop {
        if let Err(error) = store.load_document(CHATS, "other").await {
            break error;
        }
    };
    assert!(matches!(error, StoreError::Busy { waited, .. } if waited == patience), "{error:?}");
    assert!(error.is_transient());
    assert_ne!(holding.await.unwrap().unwrap(), Swap::Refused);
    assert_eq!(store.load_document(CHATS, "other").await.unwrap(), None);
}

/// B2, B7: a conditional write that was applied, but whose confirmation failed, is recognised when
/// it is repeated, and told as what it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_confirmation_was_lost_is_recognised() {
    let Some(server) = PrivateServer::start(FAULTY).await else { return support::skip() };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let lost = || {
        let concern = doc! { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" };
        disturb(&server, doc! { "times": 1 }, doc! { "writeConcernError": concern })
    };
    let applied = |swap: Swap| match swap {
        Swap::Applied(revision) => revision,
        Swap::Refused => panic!("refused"),
    };
    lost().await;
    let first = applied(store.save_document_if(CHATS, "a", "1", None).await.unwrap());
    lost().await;
    let second = applied(store.save_document_if(CHATS, "a", "2", Some(first)).await.unwrap());
    let read = store.load_document(CHATS, "a").await.unwrap().unwrap();
    assert_eq!((read.revision, read.body), (second, "2".to_owned()));
    lost().await;
    applied(store.remove_document_if(CHATS, "a", second).await.unwrap());

    let (chat, conditional) = (chat("a"), conditional(&store));
    lost().await;
    let made = conditional.set_checkpoint_if(&chat, body("1"), None, Fence::new(3));
    let made = applied(made.await.unwrap());
    lost().await;
    applied(conditional.clear_checkpoint_if(&chat, made, Fence::new(3)).await.unwrap());

    lost().await;
    let minute = Duration::from_secs(60);
    let lock = store.acquire_lock_fenced("a", minute).await.unwrap().expect("it is free");
    lost().await;
    assert!(store.renew_lock("a", &lock.token, minute).await.unwrap());
    lost().await;
    assert!(store.release_lock("a", &lock.token).await.unwrap());
    assert!(!store.release_lock("a", &lock.token).await.unwrap(), "released twice");

    // Repeated, this one would undo what others did meanwhile.
    lost().await;
    let error = store.set_checkpoint(&chat, body("x"), Fence::new(3)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
}

/// B7: an election is waited out.
#[tokio::test(flavor = "multi_thread")]
async fn an_election_is_waited_out() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let step_down = doc! { "replSetStepDown": 3, "force": true };
    server.client().await.database("admin").run_command(step_down).await.unwrap();
    let hasty = MongoStore::connect(server.url()).patience(Duration::from_millis(200));
    let error = hasty.build().unwrap().save_document_if(CHATS, "a", "0", None).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_ne!(store.save_document_if(CHATS, "a", "1", None).await.unwrap(), Swap::Refused);
}

/// B2, B7: connections that are cut in the middle of work change no outcome: what was told as
/// applied is there once, what was told as refused is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_make_no_outcome_untrue() {
    let Some(server) = PrivateServer::start(FAULTY).await else { return support::skip() };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let saved = store.save_document_if(CHATS, "n", "0", None).await.unwrap();
    assert_ne!(saved, Swap::Refused);
    let shared = Arc::new((AtomicBool::new(false), AtomicU64::new(0)));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (store, shared) = (store.clone(), Arc::clone(&shared));
            tokio::spawn(async move {
                let (ended, told) = &*shared;
                while !ended.load(Ordering::Relaxed) {
                    let read = store.load_document(CHATS, "n").await.unwrap().unwrap();
                    let next = (read.body.parse::<u64>().unwrap() + 1).to_string();
                    let saved = store.save_document_if(CHATS, "n", &next, Some(read.revision));
                    if saved.await.unwrap() != Swap::Refused {
                        told.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for round in 0..20 {
        let before = shared.1.load(Ordering::Relaxed);
        let cut = match round % 2 {
            0 => doc! { "closeConnection": true },
            _ => {
                doc! { "writeConcernError": { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" } }
            }
        };
        disturb(&server, doc! { "times": 2 }, cut).await;
        while shared.1.load(Ordering::Relaxed) < before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    shared.0.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    let told = shared.1.load(Ordering::Relaxed);
    let read = store.load_document(CHATS, "n").await.unwrap().unwrap();
    let reached: u64 = read.body.parse().unwrap();
    // One that was applied, then written over by another before it was recognised, is told as
    // refused: nobody can know better.
    assert!(told <= reached, "{told} writes were told, {reached} were made");
    assert!(reached <= told + 20, "{reached} writes were made, only {told} told");
}

/// B2: a caller that gives up in the middle of a call disturbs no other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_disturbs_nobody() {
    let Some(builder) = support::store() else { return support::skip() };
    let store = builder.prefix(support::prefix()).await.unwrap();
    let (given_up, kept) = (chat("given up"), chat("kept"));
    for round in 0..40_u64 {
        let time = Duration::from_micros(round * 250);
        let text = round.to_string();
        let give_up =
            tokio::time::timeout(time, store.set_checkpoint(&given_up, body("x"), Fence::new(1)));
        let (_, ()) = tokio::join!(give_up, async {
            let write = store.set_checkpoint(&kept, body(&text), Fence::new(1));
            let revision = write.await.unwrap();
            let read = store.load_checkpoint(&kept).await.unwrap().unwrap();
            assert_eq!((read.revision, read.body), (revision, text.clone()));
        });
    }
}
