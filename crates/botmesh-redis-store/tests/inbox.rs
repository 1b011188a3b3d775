//! What the suite of stores cannot ask about the inbox: lost answers, a server that is killed, what
//! is left behind, and what is told about the server's set-up.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, MessageId, Position, ProviderId};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointStore as _, CheckpointWrite, Commit, Committed,
    InboxRecord, InboxStore as _, NewRecord, Retention, StoreError,
};
use botmesh_redis_store::RedisStore;
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::wire::Wire;
use support::PrivateServer;

const MINUTE: Duration = Duration::from_secs(60);
const AT_ONCE: Retention = Retention { done: Duration::ZERO, dead: Duration::ZERO };

fn chat(name: &str) -> ChatKey {
    ChatKey::decode(&format!("suite:{name}")).unwrap()
}

async fn admit(store: &RedisStore, chat: &ChatKey, id: Option<&str>) -> Admission {
    let id = id.map(|id| MessageId::new(id).unwrap());
    let body = Some("the body");
    let new = NewRecord { chat, message: id.as_ref(), body, lease: MINUTE, most: 100 };
    store.admit(new).await.unwrap()
}

async fn begin(store: &RedisStore, chat: &ChatKey, fence: u64) -> InboxRecord {
    match store.begin(chat, Fence::new(fence), MINUTE).await.unwrap() {
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

fn set(body: &str) -> CheckpointChange<'_> {
    let write = CheckpointWrite { body, wake_in: None, expires_in: None };
    CheckpointChange::Set { write, expected: None }
}

/// G1, G3: a call whose answer was lost is repeated and recognised: nothing is admitted, counted
/// or ended twice, and nobody is told that another was first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_was_lost_has_one_effect_and_tells_it() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let proxy = Proxy::start(Wire::Redis, server.port).await;
    let store = RedisStore::connect(proxy.url()).await.unwrap();
    let key = chat("a");
    let mut positions = Vec::new();
    for (id, behind) in [(Some("1"), false), (None, true), (Some("3"), true)] {
        proxy.lose_next_answer();
        match admit(&store, &key, id).await {
            Admission::New { position, is_behind } => {
                assert_eq!(is_behind, behind, "{id:?}");
                positions.push(position);
            }
            other => panic!("{id:?}: {other:?}"),
        }
        assert!(proxy.has_lost_all(), "no answer was lost");
    }
    proxy.lose_next_answer();
    let record = begin(&store, &key, 7).await;
    assert_eq!((record.position, record.attempts), (positions[0], 1));
    proxy.lose_next_answer();
    let ended = store.commit(commit(&key, positions[0], set("one"))).await.unwrap();
    let row = store.load_checkpoint(&key).await.unwrap().unwrap();
    assert_eq!(ended, Committed::Applied(Some(row.revision)));
    proxy.lose_next_answer();
    let clear = CheckpointChange::Clear { expected: row.revision };
    let ended = store.commit(commit(&key, positions[1], clear)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    let record = begin(&store, &key, 7).await;
    assert_eq!((record.position, record.has_more), (positions[2], false), "admitted twice");
    proxy.lose_next_answer();
    assert!(store.bury(&key, positions[2], Fence::new(7), "e").await.unwrap());
    proxy.lose_next_answer();
    assert!(store.revive(&key, positions[2]).await.unwrap());
    proxy.lose_next_answer();
    let ended = store.commit(commit(&key, positions[2], CheckpointChange::Nothing)).await;
    assert_eq!(ended.unwrap(), Committed::Applied(None));
    let again = store.commit(commit(&key, positions[2], CheckpointChange::Nothing)).await;
    assert_eq!(again.unwrap(), Committed::Refused, "ended twice");
    assert!(proxy.has_lost_all(), "no answer was lost");
}

/// G3, G7: a server that is killed in the middle keeps all that it said it has, and of each commit
/// under way both the end of the record and the checkpoint or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_whole_or_absent_when_the_server_is_killed() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = PrivateServer::start(&arguments) else { return support::skip() };
    let patience = Duration::from_millis(100);
    let store = RedisStore::connect(server.url()).patience(patience).await.unwrap();
    let chats: Vec<ChatKey> = (0..200).map(|number| chat(&number.to_string())).collect();
    let mut commits = Vec::new();
    for key in &chats {
        let Admission::New { position, .. } = admit(&store, key, Some("1")).await else {
            panic!("not new")
        };
        let (store, key) = (store.clone(), key.clone());
        commits.push(async move { store.commit(commit(&key, position, set("done"))).await });
    }
    let commits: Vec<_> = commits.into_iter().map(tokio::spawn).collect();
    while store.load_checkpoint(&chats[20]).await.is_ok_and(|row| row.is_none()) {}
    server.kill();
    let mut told = Vec::new();
    for commit in commits {
        told.push(commit.await.unwrap());
    }
    server.start_again();
    let store = RedisStore::connect(server.url()).await.unwrap();
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

/// G6: when all is forgotten nothing is left of a chat but what expires.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_what_is_forgotten() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).prefix("shop").await.unwrap();
    let fence = Fence::new(7);
    for name in ["a", "b"] {
        for id in [Some("done"), Some("dead"), None] {
            let key = chat(name);
            let Admission::New { position, .. } = admit(&store, &key, id).await else {
                panic!("not new")
            };
            begin(&store, &key, 7).await;
            if id == Some("dead") {
                assert!(store.note_sends(&key, position, fence, "sent").await.unwrap());
                assert!(store.bury(&key, position, fence, "e").await.unwrap());
            } else {
                let ended = store.commit(commit(&key, position, CheckpointChange::Nothing)).await;
                assert_eq!(ended.unwrap(), Committed::Applied(None));
            }
        }
        let (id, key) = (MessageId::new("claim").unwrap(), chat(name));
        let body = None;
        let claim = NewRecord { chat: &key, message: Some(&id), body, lease: MINUTE, most: 9 };
        for lease in [MINUTE, Duration::ZERO] {
            let admitted = store.admit(NewRecord { lease, ..claim }).await.unwrap();
            let Admission::New { position, .. } = admitted else { panic!("{admitted:?}") };
            if lease == MINUTE {
                store.release(&key, position).await.unwrap();
            }
        }
    }
    let mut forgotten = 0;
    while forgotten < 8 {
        forgotten += store.forget(AT_ONCE, 3).await.unwrap();
    }
    let provider = ProviderId::new("suite").unwrap();
    assert!(store.take_waiting(&provider, MINUTE, 9).await.unwrap().is_empty());
    let mut behind = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut behind).await.unwrap();
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut behind).await.unwrap();
        let stays = key == "shop:meta" || key == "shop:i:last";
        assert!(stays || (0..11 * 60 * 1000).contains(&left), "{key}: {left}");
    }
}

/// G6: a server that is full takes nothing in and says so; forgetting makes room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_no_messages_but_forgets() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).await.unwrap();
    let key = chat("a");
    let Admission::New { position, .. } = admit(&store, &key, Some("1")).await else {
        panic!("not new")
    };
    let ended = store.commit(commit(&key, position, CheckpointChange::Nothing)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    let Admission::New { position, .. } = admit(&store, &key, Some("2")).await else {
        panic!("not new")
    };
    let mut behind = server.connection().await;
    let mut limit = redis::cmd("CONFIG");
    limit.arg(&["SET", "maxmemory", "1"]).exec_async(&mut behind).await.unwrap();
    let id = MessageId::new("3").unwrap();
    let new = NewRecord { chat: &key, message: Some(&id), body: None, lease: MINUTE, most: 9 };
    let error = store.admit(new).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let error = store.commit(commit(&key, position, set("x"))).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(store.load_checkpoint(&key).await.unwrap(), None, "half a commit");
    assert_eq!(store.forget(AT_ONCE, 9).await.unwrap(), 1, "what is done");
    let mut limit = redis::cmd("CONFIG");
    limit.arg(&["SET", "maxmemory", "0"]).exec_async(&mut behind).await.unwrap();
    assert_eq!(begin(&store, &key, 7).await.position, position);
}

/// G7: what about a server endangers what was accepted is told, and nothing of one that is set up
/// well.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_lose_what_was_accepted_is_told_of() {
    let dangers = async |arguments: &[&str]| {
        let server = PrivateServer::start(arguments)?;
        let dangers = RedisStore::connect(server.url()).await.unwrap().dangers().await.unwrap();
        Some(dangers)
    };
    let appending = ["--appendonly", "yes"];
    let Some(none) = dangers(&appending).await else { return support::skip() };
    assert!(none.is_empty(), "{none:?}");
    let cases: [(&[&str], &str); 4] = [
        (&[], "keeps nothing on disk"),
        (&["--save", "60", "1"], "snapshots only"),
        (&["--appendonly", "yes", "--appendfsync", "no"], "appendfsync no"),
        (
            &["--appendonly", "yes", "--maxmemory", "9mb", "--maxmemory-policy", "volatile-ttl"],
            "volatile-ttl",
        ),
    ];
    for (arguments, wanted) in cases {
        let found = dangers(arguments).await.unwrap();
        let [danger] = &found[..] else { panic!("{wanted}: {found:?}") };
        assert!(danger.contains(wanted), "{danger}");
    }
    let node = PrivateServer::start_cluster(&appending).await.unwrap();
    let store = RedisStore::cluster([node.url()]).await.unwrap();
    assert_eq!(store.dangers().await.unwrap(), [""; 0], "of a cluster");

    // A managed server does not let anybody look at its settings.
    let server = PrivateServer::start(&appending).unwrap();
    let mut behind = server.connection().await;
    let mut user = redis::cmd("ACL");
    user.arg(&["SETUSER", "bot", "on", ">pass", "~*", "&*", "+@all", "-config"]);
    user.exec_async(&mut behind).await.unwrap();
    let builder = RedisStore::connect(server.url()).credentials(Some("bot"), "pass");
    let found = builder.await.unwrap().dangers().await.unwrap();
    let [danger] = &found[..] else { panic!("{found:?}") };
    assert!(danger.contains("appendfsync could not be looked at"), "{danger}");
}
