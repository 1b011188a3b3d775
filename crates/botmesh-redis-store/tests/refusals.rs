//! What is told at the start when a server does not fit.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::coordination::Coordinator as _;
use botmesh_core::id::Fence;
use botmesh_core::store::{
    Admission, CheckpointChange, CheckpointStore as _, CheckpointWrite, Collection, Commit,
    Committed, DocumentStore as _, InboxStore as _, LockStore as _, NewRecord, StoreError, Swap,
};
use botmesh_redis_store::{RedisStore, RedisStoreBuilder};
use botmesh_test_support::replica::{acquire, take};
use support::PrivateServer;
use support::replica::replica;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Why the store does not open. Nothing that it says may hold the password of these tests.
async fn refusal(builder: RedisStoreBuilder) -> String {
    match builder.await {
        Err(error @ StoreError::Refused { .. }) => {
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2"), "{text}");
            text
        }
        other => panic!("not refused: {other:?}"),
    }
}

macro_rules! private {
    ($($argument:expr),*) => {
        match PrivateServer::start(&[$($argument),*]) {
            Some(server) => server,
            None => return support::skip(),
        }
    };
}

/// B7: a wrong password is told as such, with what to do, and is never shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused_with_what_to_do() {
    let server = private!("--requirepass", "secret");
    let with = |secret: &str| format!("redis://:{secret}@127.0.0.1:{}", server.port);
    let wrong = refusal(RedisStore::connect(with("hunter2"))).await;
    assert!(wrong.contains("password is wrong: correct"), "{wrong}");
    let missing = refusal(RedisStore::connect(server.url())).await;
    assert!(missing.contains("wants a password: put it into the URL"), "{missing}");
    let user = RedisStore::connect(server.url()).credentials(Some("nobody"), "hunter2");
    assert!(refusal(user).await.contains("correct"));
    RedisStore::connect(with("secret")).await.unwrap();
    RedisStore::connect(with("hunter2")).credentials(None, "secret").await.unwrap();
}

/// B7: a user without a permission is told which one is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_refused_with_what_to_do() {
    let server = private!();
    let mut behind = server.connection().await;
    redis::cmd("ACL")
        .arg(&["SETUSER", "bot", "on", ">hunter2", "~shop:*", "&*", "+@all", "-eval", "-evalsha"])
        .exec_async(&mut behind)
        .await
        .unwrap();
    let builder = RedisStore::connect(server.url()).credentials(Some("bot"), "hunter2");
    let text = refusal(builder.prefix("shop")).await;
    assert!(text.contains("lacks a permission") && text.contains("evalsha"), "{text}");
}

/// B7: the permissions that the README lists suffice for the store and the coordinator.
#[tokio::test(flavor = "multi_thread")]
async fn the_permissions_in_the_readme_suffice() {
    let server = private!();
    let open = || RedisStore::connect(server.url());
    permissions_suffice(&server, open, &["+@connection"]).await;
    let Some(node) = PrivateServer::start_cluster(&[]).await else { return support::skip() };
    let open = || RedisStore::cluster([node.url()]);
    permissions_suffice(&node, open, &["+@connection", "+cluster|slots"]).await;
}

/// Does everything as a user who has only the listed permissions, `known` among them.
async fn permissions_suffice(
    server: &PrivateServer,
    open: impl Fn() -> RedisStoreBuilder,
    known: &[&str],
) {
    let mut behind = server.connection().await;
    let readme = include_str!("../README.md");
    assert!(known.iter().all(|permission| readme.contains(permission)), "{known:?}");
    let (_, listed) = readme.split_once("`+@connection").unwrap();
    let (listed, _) = listed.split_once('`').unwrap();
    let mut user = redis::cmd("ACL");
    user.arg(&["SETUSER", "bot", "on", ">hunter2", "~shop:*", "~{shop:*", "&shop:*", "&{shop:*"]);
    user.arg(known).arg(listed.split_whitespace().collect::<Vec<_>>());
    user.exec_async(&mut behind).await.unwrap();
    let builder = || open().credentials(Some("bot"), "hunter2").prefix("shop");
    let store = builder().await.unwrap();
    let chat = botmesh_core::ChatKey::decode("suite:a").unwrap();
    let write = CheckpointWrite { body: "text", wake_in: Some(Duration::ZERO), expires_in: None };
    store.set_checkpoint(&chat, write, Fence::new(1)).await.unwrap();
    assert_eq!(store.checkpoints_to_wake(Duration::ZERO, 9).await.unwrap().len(), 1);
    store.clear_checkpoint(&chat).await.unwrap();
    let saved = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap();
    let Swap::Applied(revision) = saved else { panic!("{saved:?}") };
    store.remove_document_if(Collection::Chats, "a", revision).await.map(drop).unwrap();
    let lock = store.acquire_lock_fenced("a", Duration::from_secs(9)).await.unwrap().unwrap();
    assert!(store.release_lock("a", &lock.token).await.unwrap());
    let (message, lease) = (None, Duration::from_secs(9));
    let new = NewRecord { chat: &chat, message, body: Some("text"), lease, most: 9 };
    let admitted = store.admit(new).await.unwrap();
    let Admission::New { position, .. } = admitted else { panic!("{admitted:?}") };
    let (fence, checkpoint) = (Fence::new(1), CheckpointChange::Nothing);
    let commit = Commit { chat: &chat, position, fence, checkpoint };
    assert_eq!(store.commit(commit).await.unwrap(), Committed::Applied(None));
    assert_eq!(store.dangers().await.unwrap().len(), 1, "what could not be looked at");

    let (a, b) = (replica(builder()).await, replica(builder()).await);
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&botmesh_test_support::replica::chat("k")).await.unwrap();
    let (next, released) = tokio::join!(acquire(&b, ticket), async {
        turn.release().await.unwrap();
        Instant::now()
    });
    assert!(released.elapsed() < Duration::from_millis(200), "woken by a poll, not by a push");
    next.release().await.unwrap();
    b.stop().await.unwrap();
}

/// B7: a read-only replica is refused when the store opens, and later.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_replica_is_refused() {
    let master = private!();
    let port = master.port.to_string();
    let replica = private!("--replicaof", "127.0.0.1", &port);
    let text = refusal(RedisStore::connect(replica.url())).await;
    assert!(text.contains("read-only replica: connect to its master"), "{text}");

    // One that becomes a replica while the store is in use.
    let patience = Duration::from_millis(200);
    let store = RedisStore::connect(master.url()).patience(patience).await.unwrap();
    let mut behind = master.connection().await;
    let other = replica.port.to_string();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(&other).exec_async(&mut behind).await.unwrap();
    let error = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap_err();
    assert!(error.to_string().contains("read-only replica"), "{error}");
}

/// B7: a server that throws keys away is warned about.
#[tokio::test(flavor = "multi_thread")]
async fn eviction_is_warned_about() {
    let server = private!("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
    let store = RedisStore::connect(server.url()).await.unwrap();
    let [warning] = &store.warnings()[..] else { panic!("{:?}", store.warnings()) };
    assert!(warning.contains("allkeys-lru") && warning.contains("noeviction"), "{warning}");
    let calm = private!();
    assert!(RedisStore::connect(calm.url()).await.unwrap().warnings().is_empty());
}

/// B7: a full server is told as such; nothing is written, and reading goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_is_told_as_such() {
    let server = private!();
    let store = RedisStore::connect(server.url()).await.unwrap();
    let swap = store.save_document_if(Collection::Chats, "a", "kept", None).await.unwrap();
    let mut behind = server.connection().await;
    let set = |value: &str| redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(value).to_owned();
    set("1").exec_async(&mut behind).await.unwrap();
    let error = store.save_document_if(Collection::Chats, "b", "text", None).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let read = store.load_document(Collection::Chats, "a").await.unwrap();
    assert_eq!(read.map(|document| document.body), Some("kept".to_owned()), "after {swap:?}");
    let chat = botmesh_core::ChatKey::decode("suite:a").unwrap();
    assert_eq!(store.load_checkpoint(&chat).await.unwrap(), None);
    set("0").exec_async(&mut behind).await.unwrap();
    assert_eq!(store.load_document(Collection::Chats, "b").await.unwrap(), None);
    store.save_document_if(Collection::Chats, "b", "text", None).await.map(drop).unwrap();
}

/// C12: the default layout on a cluster is refused at the start.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_layout_on_a_cluster_is_refused() {
    let Ok(nodes) = std::env::var("BOTMESH_TEST_REDIS_CLUSTER") else { return support::skip() };
    for node in nodes.split(',') {
        let text = refusal(RedisStore::connect(node)).await;
        assert!(text.contains("node of a cluster") && text.contains("`RedisStore::cluster`"));
    }
}

/// C12: the layout for clusters on a single server is refused at the start.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_layout_on_a_single_server_is_refused() {
    let server = private!();
    let patience = Duration::from_millis(300);
    let text = refusal(RedisStore::cluster([server.url()]).patience(patience)).await;
    assert!(text.contains("no node of a cluster"), "{text}");
}

/// B5: a prefix that a newer version or another layout uses is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_and_another_layout_are_refused() {
    let server = private!();
    let open = || RedisStore::connect(server.url()).prefix("shop");
    open().await.unwrap();
    let mut behind = server.connection().await;
    let mut set = async |field: &str, value: &str| {
        let mut set = redis::cmd("HSET");
        set.arg("shop:meta").arg(field).arg(value).exec_async(&mut behind).await.unwrap();
    };
    set("version", "7").await;
    let error = open().await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 7, supported: 1, .. }), "{error:?}");
    set("version", "1").await;
    set("layout", "cluster 64").await;
    let text = refusal(open()).await;
    assert!(text.contains("cluster 64") && text.contains("another prefix"), "{text}");
    RedisStore::connect(server.url()).prefix("other").await.unwrap();
}

/// B5: a server that is too old is refused. It is a fake: it answers as Redis 5 would.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_refused() {
    let url = fake("-ERR unknown command `HELLO`, with args beginning with: `3`\r\n").await;
    let text = refusal(RedisStore::connect(url)).await;
    assert!(text.contains("upgrade it to Redis 7.0"), "{text}");
    // A proxy may hide that, but INFO tells.
    let information = "redis_version:6.2.14\r\nredis_mode:standalone\r\nrole:master\r\n";
    let url = fake(&format!("${}\r\n{information}\r\n", information.len())).await;
    let text = refusal(RedisStore::connect(format!("{url}/?protocol=resp2"))).await;
    assert!(text.contains("6.2.14: upgrade it to Redis 7.0"), "{text}");
}

/// A server that answers the first command with `answer`, and that of INFO too.
async fn fake(answer: &str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let answer = answer.to_owned();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = socket.read(&mut buffer).await {
                let text = String::from_utf8_lossy(&buffer[..length]).to_uppercase();
                for word in text.split("\r\n") {
                    let reply = match word {
                        "HELLO" | "INFO" => answer.as_str(),
                        "CLIENT" => "+OK\r\n",
                        _ => continue,
                    };
                    if socket.write_all(reply.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        }
    });
    url
}
