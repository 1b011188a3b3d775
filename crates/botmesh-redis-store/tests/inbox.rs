//! What the suite of stores cannot ask about the inbox: lost answers, a server that is killed, what
//! is left behind, and what is told about the server's set-up.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::id::{MessageId, ProviderId};
use botmesh_core::store::{
    Admission, CheckpointChange, CheckpointStore as _, Committed, InboxStore as _, NewRecord,
    Retention, StoreError,
};
use botmesh_redis_store::RedisStore;
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::records::{self, FENCE, admit_new, begin, commit, set};
use botmesh_test_support::replica::chat;
use botmesh_test_support::wire::Wire;
use support::PrivateServer;

const MINUTE: Duration = Duration::from_secs(60);
const AT_ONCE: Retention = Retention { done: Duration::ZERO, dead: Duration::ZERO };

/// G1, G3: a call whose answer was lost is repeated and recognised: nothing is admitted, counted
/// or ended twice, and nobody is told that another was first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_was_lost_has_one_effect_and_tells_it() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let proxy = Proxy::start(Wire::Redis, server.port).await;
    let store = RedisStore::connect(proxy.url()).await.unwrap();
    records::have_one_effect_when_answers_are_lost(&store, async || {
        assert!(proxy.has_lost_all(), "no answer was lost");
        proxy.lose_next_answer();
    })
    .await;
}

/// G3, G7: a server that is killed in the middle keeps all that it said it has, and of each commit
/// under way both the end of the record and the checkpoint or neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_whole_or_absent_when_the_server_is_killed() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = PrivateServer::start(&arguments) else { return support::skip() };
    let patience = Duration::from_millis(100);
    let store = RedisStore::connect(server.url()).patience(patience).await.unwrap();
    records::are_whole_or_absent_when_the_server_is_killed(
        &mut server,
        store,
        200,
        async |server| server.kill(),
        async |server| {
            server.start_again();
            RedisStore::connect(server.url()).await.unwrap()
        },
    )
    .await;
}

/// G6: when all is forgotten nothing is left of a chat but what expires.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_what_is_forgotten() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let store = RedisStore::connect(server.url()).prefix("shop").await.unwrap();
    for name in ["a", "b"] {
        for id in [Some("done"), Some("dead"), None] {
            let key = chat(name);
            let position = admit_new(&store, &key, id).await;
            begin(&store, &key).await;
            if id == Some("dead") {
                assert!(store.note_sends(&key, position, FENCE, "sent").await.unwrap());
                assert!(store.bury(&key, position, FENCE, "e").await.unwrap());
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
    let position = admit_new(&store, &key, Some("1")).await;
    let ended = store.commit(commit(&key, position, CheckpointChange::Nothing)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    let position = admit_new(&store, &key, Some("2")).await;
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
    assert_eq!(begin(&store, &key).await.position, position);
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
