//! What happens to turns when connections, servers and runtimes fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::coordination::{Coordinator as _, LossReason};
use botmesh_mongo_store::{MongoCoordinator, MongoStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::replica::{acquire, chat, start, take};
use botmesh_test_support::wire::Wire;
use mongodb::bson::doc;
use support::replica::{LEASE, replica, replica_with};
use support::server::PrivateServer;

/// Takes turns on all replicas at once and checks that no two overlap and that fences grow.
async fn work(replicas: &[Arc<MongoCoordinator>], rounds: u32) {
    let chats = ["x", "y"].map(|name| (name, Arc::new((AtomicU32::new(0), AtomicU64::new(0)))));
    let workers = (0..6).map(|worker| {
        let replica = Arc::clone(&replicas[worker % replicas.len()]);
        let (name, state) = chats[worker % 2].clone();
        tokio::spawn(async move {
            for _ in 0..rounds {
                let turn = take(&*replica, name).await;
                assert_eq!(state.0.fetch_add(1, Ordering::SeqCst), 0, "two hold {name}");
                let last = state.1.swap(turn.fence().get(), Ordering::SeqCst);
                assert!(turn.fence().get() > last, "fence {} after {last}", turn.fence());
                tokio::task::yield_now().await;
                state.0.fetch_sub(1, Ordering::SeqCst);
                turn.release().await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}

/// C3: operations whose connection is cut before them, and such whose confirmation is lost after
/// them, cost no turn and double none.
/// C2: although all replicas have the same id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_cost_no_turn() {
    let Some(server) = PrivateServer::start(&["--enable-test-commands"]).await else {
        return support::skip();
    };
    let mut replicas = Vec::new();
    for _ in 0..3 {
        let replica = replica_with(MongoStore::connect(server.url()), LEASE * 4);
        start(&replica).await;
        replicas.push(Arc::new(replica));
    }
    take(&*replicas[0], "first").await.release().await.unwrap();
    let admin = server.client().await.database("admin");
    let waiting = doc! { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" };
    for round in 0..6 {
        let mut data = doc! {
            "failCommands": ["findAndModify", "update", "insert", "aggregate"],
            "appName": "botmesh",
        };
        match round % 2 {
            0 => data.insert("closeConnection", true),
            _ => data.insert("writeConcernError", waiting.clone()),
        };
        let mode = doc! { "times": 3 };
        let disturb = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        admin.run_command(disturb).await.unwrap();
        work(&replicas, 5).await;
    }
    for replica in &replicas {
        assert_eq!(replica.open_tickets(), 0, "tickets are left");
    }
}

/// Hands turns over from one replica to another, and answers how many of ten were quick.
async fn quick(a: &MongoCoordinator, b: &MongoCoordinator, limit: Duration) -> u32 {
    let mut quick = 0;
    for _ in 0..10 {
        let turn = take(a, "k").await;
        let ticket = b.reserve(&chat("k")).await.unwrap();
        let next = acquire(b, ticket);
        let release = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            turn.release().await.unwrap();
            Instant::now()
        };
        let (next, released) = tokio::join!(next, release);
        quick += u32::from(released.elapsed() < limit);
        next.release().await.unwrap();
    }
    quick
}

/// C14: after its connection was cut, a waiting replica is woken by the change stream again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_again_after_their_connection_was_cut() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Mongo, server.port).await;
    let a = replica(MongoStore::connect(server.url())).await;
    let b = replica(MongoStore::connect(proxy.url())).await;
    take(&a, "k").await.release().await.unwrap();
    proxy.cut();
    // While nobody asks anything, the stream comes back by itself.
    tokio::time::sleep(LEASE / 2).await;
    let quick = quick(&a, &b, Duration::from_millis(100)).await;
    // A poll comes 100 ms after the ticket was reserved, and later ones after more.
    assert!(quick >= 7, "only {quick} of 10 hand-overs were pushed");
}

/// C14: without a replica set there is no change stream, and polling does it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_replica_set_tickets_poll() {
    let Some(server) = PrivateServer::start(&["--standalone"]).await else {
        return support::skip();
    };
    let a = replica(MongoStore::connect(server.url())).await;
    let b = replica(MongoStore::connect(server.url())).await;
    let quick = quick(&a, &b, LEASE).await;
    assert!(quick >= 9, "only {quick} of 10 hand-overs within a lease");
}

/// C4: a reservation whose confirmation was lost is one place in the queue, not two, and when it
/// was given up the chat is not held by nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_whose_confirmation_was_lost_is_one_ticket() {
    let Some(server) = PrivateServer::start(&["--enable-test-commands"]).await else {
        return support::skip();
    };
    let (a, b) = (
        replica(MongoStore::connect(server.url())).await,
        replica(MongoStore::connect(server.url())).await,
    );
    take(&a, "k").await.release().await.unwrap();
    let admin = server.client().await.database("admin");
    let lose = async || {
        let waiting = doc! { "code": 64, "errmsg": "waiting", "codeName": "WriteConcernTimeout" };
        let data = doc! {
            "failCommands": ["findAndModify"], "appName": "botmesh", "writeConcernError": waiting,
        };
        let mode = doc! { "times": 1 };
        let lose = doc! { "configureFailPoint": "failCommand", "mode": mode, "data": data };
        admin.run_command(lose).await.unwrap();
    };
    for round in 0..4 {
        lose().await;
        let turn = take(&a, "k").await;
        let ticket = b.reserve(&chat("k")).await.unwrap();
        lose().await;
        let begun = Instant::now();
        turn.release().await.unwrap();
        acquire(&b, ticket).await.release().await.unwrap();
        assert!(begun.elapsed() < LEASE, "round {round}: after {:?}", begun.elapsed());
    }
    assert_eq!((a.open_tickets(), b.open_tickets()), (0, 0));
}

/// C6: after `kill -9` and a restart of the server, which forgets nothing that it confirmed, the
/// holder goes on, and nothing is granted beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_takes_no_turn_from_its_holder() {
    let Some(mut server) = PrivateServer::start(&["--sync-on-commit"]).await else {
        return support::skip();
    };
    // Longer than a busy machine takes to start a server.
    let lease = LEASE * 4;
    let [a, b] = [(); 2].map(|()| replica_with(MongoStore::connect(server.url()), lease));
    start(&a).await;
    start(&b).await;
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    server.kill();
    server.start_again().await;
    assert!(turn.check().is_ok(), "lost at once");
    let other = take(&b, "free").await;
    assert!(turn.check().is_ok(), "{:?}", turn.check());
    let fence = turn.fence();
    turn.release().await.unwrap();
    let next = acquire(&b, ticket).await;
    assert_eq!(next.previous_fence(), Some(fence));
    assert!(next.fence() > fence);
    drop(other);
}

/// C6: after everything was wiped, whoever held a turn has given it up before another one gets it.
/// C9: the fence of the next turn is higher all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_database_grants_nothing_beside_an_old_holder() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Mongo, server.port).await;
    let a = replica(MongoStore::connect(proxy.url())).await;
    let b = replica(MongoStore::connect(server.url())).await;
    take(&b, "k").await.release().await.unwrap();
    let turn = take(&a, "k").await;
    let (guard, fence) = (turn.guard(), turn.fence());
    // It believes in its turn until its own deadline, for it hears nothing.
    proxy.freeze(true);
    server.client().await.database("botmesh").drop().await.unwrap();
    let next = take(&b, "k").await;
    assert!(guard.check().is_err(), "two hold one chat");
    assert!(next.fence() > fence, "fence {} after {fence}", next.fence());
    assert_eq!(next.previous_holder(), None, "the server has forgotten it");
    proxy.freeze(false);
    next.release().await.unwrap();
    // The replica comes back as another incarnation.
    take(&a, "k").await.release().await.unwrap();
}

/// C6: a replica whose runtime is stuck loses its turns, although its heartbeat could go on, and
/// one that is only busy keeps them.
#[test]
fn a_stuck_runtime_loses_its_turns_and_a_busy_one_keeps_them() {
    if support::url().is_none() {
        return support::skip();
    }
    let prefix = support::prefix();
    let store = || support::store().unwrap().prefix(&prefix);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (stuck, other) = (runtime(), runtime());
    let (a, turn) = stuck.block_on(async {
        let a = replica(store()).await;
        let turn = take(&a, "k").await;
        // Three leases, during which the runtime hardly runs: heartbeats have their own thread.
        for _ in 0..12 {
            std::thread::sleep(LEASE / 4);
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(turn.check().is_ok(), "a busy replica lost its turn: {:?}", turn.check());
        }
        (a, turn)
    });
    // From here on nobody drives the first runtime.
    let begun = Instant::now();
    let next = other.block_on(async {
        let b = replica(store()).await;
        let next = take(&b, "k").await;
        (b, next)
    });
    assert!(turn.check().is_err(), "two hold one chat");
    assert!(begun.elapsed() < LEASE * 3, "after {:?}", begun.elapsed());
    let lost = stuck.block_on(turn.lost());
    assert_eq!(lost.reason, LossReason::Expired);
    stuck.block_on(async {
        // It recovers when it runs again.
        take(&a, "other").await.release().await.unwrap();
    });
    drop(next);
}

/// C1, C16: a coordinator over a client of the program works, and shares the store's prefix.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_shares_the_client_and_the_prefix_of_its_store() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let database = support::client(&url).await.database(support::DATABASE);
    let store = support::patient(MongoStore::over(database)).prefix(&prefix).await.unwrap();
    let settings = botmesh_test_support::replica::settings(LEASE);
    let a = store.coordinator().settings(settings).build().unwrap();
    start(&a).await;
    let b = replica(support::store().unwrap().prefix(&prefix)).await;
    let quick = quick(&a, &b, LEASE).await;
    assert_eq!(quick, 10, "of 10 hand-overs within a lease");
    a.stop().await.unwrap();
    b.stop().await.unwrap();
}
