//! What happens when a master is replaced, and when the node of a cluster is restarted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator as _};
use botmesh_core::id::{Fence, MessageId};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, Collection, Commit, Committed, DocumentStore as _,
    InboxStore as _, NewRecord, Swap,
};
use botmesh_redis_store::{RedisCoordinator, RedisStore};
use botmesh_test_support::replica::{acquire, chat, take};
use support::PrivateServer;
use support::replica::replica;

/// Reserves and waits, again and again while the server is away.
async fn take_at_last(replica: &RedisCoordinator, name: &str) -> ChatTurn {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let attempt = async {
            let ticket = replica.reserve(&chat(name)).await?;
            replica.acquire_turn(ticket, AcquireTurn::new()).await
        };
        match attempt.await {
            Ok(turn) => return turn,
            Err(error) => assert!(Instant::now() < deadline, "no turn in 30 s: {error}"),
        }
    }
}

/// Waits until what a server says of itself holds this text.
async fn says(server: &PrivateServer, words: &[&str], wanted: &str) {
    let mut behind = server.connection().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let mut ask = redis::cmd(words[0]);
        let text: String = ask.arg(&words[1..]).query_async(&mut behind).await.unwrap();
        if text.contains(wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "no {wanted:?} in {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// C12: after a fail-over of Sentinel replicas coordinate through the new master.
/// C6: nothing is granted there beside what the old one granted.
/// B7: the store goes on there too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_master_is_found_and_grants_nothing_beside_an_old_holder() {
    let common = ["--repl-diskless-sync-delay", "0"];
    let Some(mut master) = PrivateServer::start(&common) else { return support::skip() };
    let port = master.port.to_string();
    let follow = ["--replicaof", "127.0.0.1", &port];
    let second = PrivateServer::start(&[&common[..], &follow].concat()).unwrap();
    says(&second, &["INFO", "replication"], "master_link_status:up").await;
    let sentinel = PrivateServer::start_sentinel(master.port, "main").unwrap();
    says(&sentinel, &["INFO", "sentinel"], "slaves=1").await;

    let through = || RedisStore::sentinel([sentinel.url()], "main");
    let store = through().patience(Duration::from_secs(20)).await.unwrap();
    let (a, b) = (replica(through()).await, replica(through()).await);
    let turn = take(&a, "k").await;
    let (guard, fence) = (turn.guard(), turn.fence());
    let swap = store.save_document_if(Collection::Users, "a", "kept", None).await.unwrap();
    assert_ne!(swap, Swap::Refused);
    let mut behind = master.connection().await;
    let copies: u32 = redis::cmd("WAIT").arg(1).arg(5000).query_async(&mut behind).await.unwrap();
    assert_eq!(copies, 1, "the replica does not follow");

    master.kill();
    let next = take_at_last(&b, "k").await;
    assert!(guard.check().is_err(), "two hold one chat");
    assert!(next.fence() > fence, "fence {} after {fence}", next.fence());
    next.release().await.unwrap();
    take_at_last(&a, "k").await.release().await.unwrap();
    let read = store.load_document(Collection::Users, "a").await.unwrap();
    assert_eq!(read.map(|document| document.body), Some("kept".to_owned()));

    // Pushes come from the new master.
    let turn = take_at_last(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    let (next, released) = tokio::join!(acquire(&b, ticket), async {
        turn.release().await.unwrap();
        Instant::now()
    });
    assert!(released.elapsed() < Duration::from_millis(200), "{:?}", released.elapsed());
    drop(next);
}

/// G7: after a fail-over the inbox goes on with what the new master has: in its order, under its
/// fences, and with positions that are new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_goes_on_on_the_new_master() {
    let common = ["--repl-diskless-sync-delay", "0"];
    let Some(mut master) = PrivateServer::start(&common) else { return support::skip() };
    let port = master.port.to_string();
    let follow = ["--replicaof", "127.0.0.1", &port];
    let second = PrivateServer::start(&[&common[..], &follow].concat()).unwrap();
    says(&second, &["INFO", "replication"], "master_link_status:up").await;
    let sentinel = PrivateServer::start_sentinel(master.port, "main").unwrap();
    says(&sentinel, &["INFO", "sentinel"], "slaves=1").await;
    let store = RedisStore::sentinel([sentinel.url()], "main").patience(Duration::from_secs(20));
    let store = store.await.unwrap();

    let (key, minute) = (chat("k"), Duration::from_secs(60));
    let admit = async |id: &str| {
        let id = MessageId::new(id).unwrap();
        let body = Some("the body");
        let new = NewRecord { chat: &key, message: Some(&id), body, lease: minute, most: 9 };
        store.admit(new).await.unwrap()
    };
    let new = |admission| match admission {
        Admission::New { position, .. } => position,
        other => panic!("{other:?}"),
    };
    let (first, second) = (new(admit("1").await), new(admit("2").await));
    let begun = store.begin(&key, Fence::new(7), minute).await.unwrap();
    assert!(matches!(begun, Begun::Record(_)), "{begun:?}");
    let mut behind = master.connection().await;
    let copies: u32 = redis::cmd("WAIT").arg(1).arg(5000).query_async(&mut behind).await.unwrap();
    assert_eq!(copies, 1, "the replica does not follow");
    master.kill();

    assert_eq!(admit("1").await, Admission::Known);
    let stale = store.begin(&key, Fence::new(6), minute).await.unwrap();
    assert_eq!(stale, Begun::Refused(Fence::new(7)));
    let third = new(admit("3").await);
    for (number, position) in [(1, first), (2, second), (3, third)] {
        match store.begin(&key, Fence::new(8), minute).await.unwrap() {
            Begun::Record(record) => assert_eq!(record.position, position, "{number}"),
            other => panic!("{number}: {other:?}"),
        }
        let (fence, checkpoint) = (Fence::new(8), CheckpointChange::Nothing);
        let commit = Commit { chat: &key, position, fence, checkpoint };
        assert_eq!(store.commit(commit).await.unwrap(), Committed::Applied(None));
    }
}

/// C12: a cluster whose node was restarted grants nothing until all old leases have ended, and then
/// goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_node_of_a_cluster_begins_with_grace() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut node) = PrivateServer::start_cluster(&arguments).await else {
        return support::skip();
    };
    let through = || RedisStore::cluster([node.url()]);
    let store = through().await.unwrap();
    let (a, b) = (replica(through()).await, replica(through()).await);
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    let url = node.url();
    node.kill();
    node.start_again();
    let mut behind = support::plain(&url).await;
    let clock: (u64, u64) = redis::cmd("TIME").query_async(&mut behind).await.unwrap();
    let other = take_at_last(&b, "free").await;
    // The fence of a chat that is new is the time of its grant.
    let mut keys = redis::cmd("KEYS");
    let keys: Vec<String> =
        keys.arg("*:co:t:chat:suite:free").query_async(&mut behind).await.unwrap();
    let live = keys[0].replace(":co:t:chat:suite:free", ":co:live");
    let grace: u64 = redis::cmd("HGET").arg(live).arg("#g").query_async(&mut behind).await.unwrap();
    assert!(grace > clock.0 * 1_000_000 + clock.1, "no grace began with the restart");
    assert!(other.fence().get() >= grace, "granted at {} during grace", other.fence());
    let fence = turn.fence();
    // Both kept what they had if they could renew in time; nobody has it beside them otherwise.
    if turn.check().is_ok() {
        turn.release().await.unwrap();
        if let Ok(next) = b.acquire_turn(ticket, AcquireTurn::new()).await {
            assert!(next.fence() > fence);
        }
    }
    other.release().await.unwrap();
    let swap = store.save_document_if(Collection::Users, "a", "text", None).await.unwrap();
    assert_ne!(swap, Swap::Refused);
}
