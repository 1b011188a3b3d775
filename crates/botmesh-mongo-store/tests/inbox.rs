//! What the suite of stores cannot ask about the inbox: lost confirmations, a server that is
//! killed, rows that end while records are in them, and the way from the schema before.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::Fence;
use botmesh_core::store::{
    Admission, CheckpointChange, CheckpointStore as _, CheckpointWrite, Committed, InboxStore as _,
    NewRecord, Retention, Store as _, StoreError,
};
use botmesh_mongo_store::MongoStore;
use botmesh_test_support::records::{self, admit_new, begin, commit};
use mongodb::bson::doc;
use support::server::PrivateServer;
use support::{body, chat, patient};

const MINUTE: Duration = Duration::from_secs(60);
const AT_ONCE: Retention = Retention { done: Duration::ZERO, dead: Duration::ZERO };

/// G1, G3: a call that was applied, but whose confirmation failed, is recognised when it is
/// repeated: nothing is admitted, counted or ended twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_confirmation_was_lost_has_one_effect_and_tells_it() {
    let Some(server) = PrivateServer::start(&["--enable-test-commands"]).await else {
        return support::skip();
    };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let admin = server.client().await.database("admin");
    records::have_one_effect_when_answers_are_lost(&store, async || {
        let concern = doc! { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" };
        let told = doc! {
            "failCommands": ["findAndModify"], "appName": "botmesh", "writeConcernError": concern,
        };
        let command = doc! {
            "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": told,
        };
        admin.run_command(command).await.unwrap();
    })
    .await;
}

/// G3, G7: a server that is killed in the middle keeps all that it said it has, and of each commit
/// under way both the end of the record and the checkpoint or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_whole_or_absent_when_the_server_is_killed() {
    let Some(mut server) = PrivateServer::start(&["--sync-on-commit"]).await else {
        return support::skip();
    };
    patient(MongoStore::connect(server.url())).await.unwrap();
    let hasty = MongoStore::connect(server.url()).response_timeout(Duration::from_secs(30));
    let hasty = hasty.patience(Duration::from_millis(300)).build().unwrap();
    records::are_whole_or_absent_when_the_server_is_killed(
        &mut server,
        hasty,
        40,
        async |server| server.kill(),
        async |server| {
            server.start_again().await;
            patient(MongoStore::connect(server.url())).await.unwrap()
        },
    )
    .await;
}

/// G6, G7: the server sweeps no row in which there are records, also when its checkpoint has ended;
/// when all are forgotten it sweeps it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_records_is_not_swept_when_its_checkpoint_ends() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    let store = open.prefix(&prefix).await.unwrap();
    let rows = support::rows(&prefix, "checkpoints").await;
    let is_swept = async |key: &ChatKey| {
        let row = rows.find_one(doc! { "_id": key.as_str() }).await.unwrap().unwrap();
        row.contains_key("ends_at")
    };
    let (expired, cleared, adopted) = (chat("expired"), chat("cleared"), chat("adopted"));
    let fence = Fence::new(1);
    let soon = CheckpointWrite { expires_in: Some(Duration::ZERO), ..body("text") };
    let mut first = Vec::new();
    for key in [&expired, &cleared, &adopted] {
        // Once before the record and once behind it.
        store.set_checkpoint(key, soon, fence).await.unwrap();
        assert!(is_swept(key).await, "{key}");
        first.push(admit_new(&store, key, Some("1")).await);
        assert!(!is_swept(key).await, "{key}");
    }
    store.set_checkpoint(&expired, soon, fence).await.unwrap();
    store.set_checkpoint(&cleared, body("text"), fence).await.unwrap();
    store.clear_checkpoint(&cleared).await.unwrap();
    let conditional = store.conditional_checkpoints().unwrap();
    let found = conditional.adopt_checkpoint(&adopted, Fence::new(3)).await.unwrap();
    assert_eq!(found.checkpoint, None);
    for (key, position) in [&expired, &cleared, &adopted].into_iter().zip(first) {
        assert_eq!(store.load_checkpoint(key).await.unwrap(), None, "{key} has ended");
        assert!(!is_swept(key).await, "{key} with a pending record");
        assert_eq!(begin(&store, key).await.position, position);
        let ended = store.commit(commit(key, position, CheckpointChange::Nothing)).await;
        assert_eq!(ended.unwrap(), Committed::Applied(None));
        assert!(!is_swept(key).await, "{key} with an id that must be known");
    }
    while store.forget(AT_ONCE, 2).await.unwrap() > 0 {}
    for key in [&expired, &cleared, &adopted] {
        assert!(is_swept(key).await, "{key} with nothing");
    }
}

/// G6: a chat whose pending records fill its row takes no more in, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_that_fills_its_row_takes_no_more() {
    let Some(open) = support::store() else { return support::skip() };
    let store = open.prefix(support::prefix()).await.unwrap();
    let (key, text) = (chat("a"), "x".repeat(8 << 20));
    let new = |body| NewRecord { chat: &key, message: None, body, lease: MINUTE, most: 9 };
    let first = store.admit(new(Some(&text))).await.unwrap();
    let Admission::New { position, .. } = first else { panic!("{first:?}") };
    let second = store.admit(new(Some(&text))).await.unwrap();
    assert_eq!(second, Admission::Full { waiting: 1 });
    let ended = store.commit(commit(&key, position, CheckpointChange::Nothing)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    assert!(matches!(store.admit(new(Some(&text))).await.unwrap(), Admission::New { .. }));
    let error = store.admit(new(Some(&text.repeat(2)))).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { .. }), "{error:?}");
}

/// B5: the schema before is migrated by many at once, and keeps what is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_before_is_migrated_by_many_at_once() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    let rows = support::rows(&prefix, "checkpoints").await;
    let meta = support::rows(&prefix, "meta").await;
    let old = doc! {
        "_id": "test:a", "revision": 5_i64, "fence": 3_i64, "body": "kept", "request": "r",
    };
    rows.insert_one(old).await.unwrap();
    meta.insert_one(doc! { "_id": "schema", "version": 1_i64 }).await.unwrap();
    let opening: Vec<_> =
        (0..4).map(|_| tokio::spawn(open.clone().prefix(&prefix).into_future())).collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    let store = open.prefix(&prefix).await.unwrap();
    let version = meta.find_one(doc! { "_id": "schema" }).await.unwrap().unwrap();
    assert_eq!(version.get_i64("version").unwrap(), 2);
    let key = chat("a");
    let position = admit_new(&store, &key, Some("1")).await;
    let kept = store.load_checkpoint(&key).await.unwrap().unwrap();
    assert_eq!((kept.revision.get(), &*kept.body), (5, "kept"));
    let write = body("next");
    let change = CheckpointChange::Set { write, expected: Some(kept.revision) };
    let ended = store.commit(commit(&key, position, change)).await.unwrap();
    assert!(matches!(ended, Committed::Applied(Some(_))), "{ended:?}");
    assert!(rows.list_index_names().await.unwrap().contains(&"lease_at".to_owned()));
}
