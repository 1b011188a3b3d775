//! A master of a cluster dies during work, and its replica takes its place.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use botmesh_core::coordination::{AcquireTurn, Coordinator, CoordinatorSettings};
use botmesh_core::{ChatKey, ProviderId, ReplicaId};
use botmesh_test_support::absent;
use botmesh_tests::backend;
use botmesh_tests::servers::{self, Layout, Servers};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

const LEASE: Duration = Duration::from_millis(1500);
const PATIENCE: Duration = Duration::from_secs(60);
/// So many that each master has some.
const CHATS: usize = 60;

/// What is known of one chat: the highest fence under which anybody acted, and how often.
#[derive(Debug, Default)]
struct Chat {
    fence: AtomicU64,
    acts: AtomicU64,
}

async fn replica(url: &str) -> Arc<dyn Coordinator> {
    let settings = CoordinatorSettings::builder().lease(LEASE).build().unwrap();
    let coordinator = backend::open("redis-cluster", url, ReplicaId::random(), settings).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = coordinator.start().await {
        assert!(Instant::now() < deadline, "{error:?}");
    }
    coordinator
}

/// Takes turns on one chat and acts under them, until it is told to stop.
async fn work(
    coordinator: Arc<dyn Coordinator>,
    key: ChatKey,
    chat: Arc<Chat>,
    stop: watch::Receiver<bool>,
) {
    while !*stop.borrow() {
        let Ok(ticket) = coordinator.reserve(&key).await else { continue };
        let options = AcquireTurn::new().with_wait(PATIENCE);
        let Ok(turn) = coordinator.acquire_turn(ticket, options).await else { continue };
        for _ in 0..3 {
            let fence = turn.fence().get();
            // Nothing is awaited between the check and the act.
            if turn.check().is_ok() {
                let highest = chat.fence.fetch_max(fence, Ordering::SeqCst);
                assert!(highest <= fence, "{key:?}: acted with {fence} after {highest}");
                chat.acts.fetch_add(1, Ordering::SeqCst);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(turn);
    }
}

/// Waits until every chat was acted on `more` times from now on.
async fn all_get_on(chats: &[Arc<Chat>], more: u64) {
    let acts = || chats.iter().map(|chat| chat.acts.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let (before, deadline) = (acts(), Instant::now() + PATIENCE);
    while acts().iter().zip(&before).any(|(now, before)| *now < before + more) {
        assert!(Instant::now() < deadline, "some chat stands still: {before:?} then {:?}", acts());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// C12: when a master of a cluster of six nodes dies during work, the chats that it had go on with
/// its replica, and the others with their own.
/// C6: nobody acts on a chat beside a new holder, although the replica may not know the last grants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_go_on_when_a_master_of_a_cluster_dies() {
    if !servers::is_installed() {
        return absent::skip("redis-server is absent");
    }
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = Servers::start(directory.path(), Layout::Cluster, None).await.unwrap();
    let urls: Vec<_> =
        cluster.ports().iter().map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let replicas =
        [replica(&urls.join(",")).await, replica(&urls.join(",")).await, replica(&urls[0]).await];
    let provider = ProviderId::new("test").unwrap();
    let chats: Vec<Arc<Chat>> = (0..CHATS).map(|_| Arc::default()).collect();
    let (stop, stopping) = watch::channel(false);
    let mut workers = JoinSet::new();
    for (number, chat) in chats.iter().enumerate() {
        let key = ChatKey::new(&provider, &number.to_string()).unwrap();
        for place in 0..2 {
            let replica = Arc::clone(&replicas[(number + place) % replicas.len()]);
            workers.spawn(work(replica, key.clone(), Arc::clone(chat), stopping.clone()));
        }
    }
    all_get_on(&chats, 4).await;
    for _ in 0..2 {
        let master = cluster.masters().await[0];
        cluster.data[master].kill();
        all_get_on(&chats, 8).await;
        let masters = cluster.masters().await;
        assert!(masters.len() == 3 && !masters.contains(&master), "{masters:?} without {master}");
        cluster.data[master].launch().await.unwrap();
        cluster.settle().await.unwrap();
        all_get_on(&chats, 4).await;
    }
    stop.send_replace(true);
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    for replica in replicas {
        replica.stop().await.unwrap();
    }
}
