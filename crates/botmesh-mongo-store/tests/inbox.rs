//! What the suite of stores cannot ask about the inbox: lost confirmations, a server that is
//! killed, rows that end while records are in them, and the way from the schema before.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, MessageId, Position};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointStore as _, CheckpointWrite, Commit, Committed,
    InboxRecord, InboxStore as _, NewRecord, Retention, Store as _, StoreError,
};
use botmesh_mongo_store::MongoStore;
use mongodb::bson::doc;
use support::server::PrivateServer;
use support::{body, chat, patient};

const MINUTE: Duration = Duration::from_secs(60);
const AT_ONCE: Retention = Retention { done: Duration::ZERO, dead: Duration::ZERO };

async fn admit(store: &MongoStore, chat: &ChatKey, id: Option<&str>) -> Admission {
    let id = id.map(|id| MessageId::new(id).unwrap());
    let body = Some("the body");
    let new = NewRecord { chat, message: id.as_ref(), body, lease: MINUTE, most: 100 };
    store.admit(new).await.unwrap()
}

async fn position(store: &MongoStore, chat: &ChatKey, id: Option<&str>) -> Position {
    match admit(store, chat, id).await {
        Admission::New { position, .. } => position,
        other => panic!("{id:?}: {other:?}"),
    }
}

async fn begin(store: &MongoStore, chat: &ChatKey) -> InboxRecord {
    match store.begin(chat, Fence::new(7), MINUTE).await.unwrap() {
        Begun::Record(record) => record,
        other => panic!("{other:?}"),
    }
}

fn commit<'a>(
    chat: &'a ChatKey,
    position: Position,
    checkpoint: CheckpointChange<'a>,
) -> Commit<'a> {
    Commit { chat, position, fence: Fence::new(7), checkpoint }
}

fn set(text: &str) -> CheckpointChange<'_> {
    CheckpointChange::Set { write: body(text), expected: None }
}

/// G1, G3: a call that was applied, but whose confirmation failed, is recognised when it is
/// repeated: nothing is admitted, counted or ended twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_confirmation_was_lost_has_one_effect_and_tells_it() {
    let Some(server) = PrivateServer::start(&["--enable-test-commands"]).await else {
        return support::skip();
    };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let admin = server.client().await.database("admin");
    let lost = async || {
        let concern = doc! { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" };
        let told = doc! {
            "failCommands": ["findAndModify"], "appName": "botmesh", "writeConcernError": concern,
        };
        let command = doc! {
            "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": told,
        };
        admin.run_command(command).await.unwrap();
    };
    let (key, fence) = (chat("a"), Fence::new(7));
    let mut positions = Vec::new();
    for (id, behind) in [(Some("1"), false), (None, true), (Some("3"), true)] {
        lost().await;
        match admit(&store, &key, id).await {
            Admission::New { position, is_behind } => {
                assert_eq!(is_behind, behind, "{id:?}");
                positions.push(position);
            }
            other => panic!("{id:?}: {other:?}"),
        }
    }
    lost().await;
    let record = begin(&store, &key).await;
    assert_eq!((record.position, record.attempts), (positions[0], 1));
    lost().await;
    let ended = store.commit(commit(&key, positions[0], set("one"))).await.unwrap();
    let row = store.load_checkpoint(&key).await.unwrap().unwrap();
    assert_eq!(ended, Committed::Applied(Some(row.revision)));
    lost().await;
    let clear = CheckpointChange::Clear { expected: row.revision };
    let ended = store.commit(commit(&key, positions[1], clear)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    let record = begin(&store, &key).await;
    assert_eq!((record.position, record.has_more), (positions[2], false), "admitted twice");
    lost().await;
    assert!(store.bury(&key, positions[2], fence, "e").await.unwrap());
    lost().await;
    assert!(store.revive(&key, positions[2]).await.unwrap());
    lost().await;
    let ended = store.commit(commit(&key, positions[2], CheckpointChange::Nothing)).await;
    assert_eq!(ended.unwrap(), Committed::Applied(None));
    let again = store.commit(commit(&key, positions[2], CheckpointChange::Nothing)).await;
    assert_eq!(again.unwrap(), Committed::Refused, "ended twice");
}

/// G3, G7: a server that is killed in the middle keeps all that it said it has, and of each commit
/// under way both the end of the record and the checkpoint or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_whole_or_absent_when_the_server_is_killed() {
    let Some(mut server) = PrivateServer::start(&["--sync-on-commit"]).await else {
        return support::skip();
    };
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    let hasty = MongoStore::connect(server.url()).patience(Duration::from_millis(300));
    let hasty = hasty.build().unwrap();
    let chats: Vec<ChatKey> = (0..40).map(|number| chat(&number.to_string())).collect();
    let mut positions = Vec::new();
    for key in &chats {
        positions.push(position(&store, key, Some("1")).await);
    }
    let commits: Vec<_> = std::iter::zip(chats.clone(), positions)
        .map(|(key, position)| {
            let hasty = hasty.clone();
            tokio::spawn(async move { hasty.commit(commit(&key, position, set("done"))).await })
        })
        .collect();
    while store.load_checkpoint(&chats[0]).await.unwrap().is_none() {}
    server.kill();
    let mut told = Vec::new();
    for commit in commits {
        told.push(commit.await.unwrap());
    }
    server.start_again().await;
    let store = patient(MongoStore::connect(server.url())).await.unwrap();
    for (key, told) in chats.iter().zip(told) {
        let is_set = store.load_checkpoint(key).await.unwrap().is_some();
        let begun = store.begin(key, Fence::new(7), MINUTE).await.unwrap();
        assert_eq!(begun == Begun::Nothing, is_set, "{key}: half a commit, told {told:?}");
        if let Ok(told) = told {
            assert!(matches!(told, Committed::Applied(Some(_))) && is_set, "{key}: {told:?}");
        }
        assert_eq!(admit(&store, key, Some("1")).await, Admission::Known, "{key}");
    }
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
        first.push(position(&store, key, Some("1")).await);
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
    let position = position(&store, &key, Some("1")).await;
    let kept = store.load_checkpoint(&key).await.unwrap().unwrap();
    assert_eq!((kept.revision.get(), &*kept.body), (5, "kept"));
    let write = body("next");
    let change = CheckpointChange::Set { write, expected: Some(kept.revision) };
    let ended = store.commit(commit(&key, position, change)).await.unwrap();
    assert!(matches!(ended, Committed::Applied(Some(_))), "{ended:?}");
    assert!(rows.list_index_names().await.unwrap().contains(&"lease_at".to_owned()));
}
