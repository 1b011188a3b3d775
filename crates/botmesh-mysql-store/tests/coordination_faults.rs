//! What happens to turns when connections, servers and runtimes fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::Fence;
use botmesh_core::coordination::{CoordinationError, Coordinator as _, LossReason};
use botmesh_mysql_store::{MysqlCoordinator, MysqlStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::replica::{LEASE, acquire, chat, take};
use botmesh_test_support::wire::Wire;
use sqlx::{AssertSqlSafe, Executor as _};
use support::replica::{replica, replica_with};
use support::server::PrivateServer;

/// Takes turns on all replicas at once and checks that no two overlap and that fences grow.
async fn work(replicas: &[Arc<MysqlCoordinator>], rounds: u32) {
    let chats = ["x", "y"].map(|name| (name, Arc::new((AtomicU32::new(0), AtomicU64::new(0)))));
    let workers = (0..12).map(|worker| {
        let replica = Arc::clone(&replicas[worker % replicas.len()]);
        let (name, state) = chats[worker % 2].clone();
        tokio::spawn(async move {
            for _ in 0..rounds {
                let turn = take(&replica, name).await;
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

async fn replicas(server: &PrivateServer, lease: Duration) -> Vec<Arc<MysqlCoordinator>> {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        let replica = replica_with(MysqlStore::connect(server.url()), lease);
        replica.start().await.unwrap();
        replicas.push(Arc::new(replica));
    }
    // Grace: the server was just made.
    take(&replicas[0], "first").await.release().await.unwrap();
    replicas
}

/// C3: connections that are cut lose no turn and double none.
/// C2: although all replicas have the same id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_cost_no_turn() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    // Heartbeats are cut too, and on a busy machine a new connection takes its time.
    let replicas = replicas(&server, LEASE * 4).await;
    let mut behind = server.connection().await;
    let cuts = Arc::new(AtomicU32::new(0));
    let nemesis = tokio::spawn({
        let cuts = Arc::clone(&cuts);
        async move {
            loop {
                let cut = support::cut(&mut behind, "bot").await;
                cuts.fetch_add(cut, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
    // However fast the machine is: until the work was disturbed often enough.
    while cuts.load(Ordering::Relaxed) <= 30 {
        work(&replicas, 30).await;
    }
    nemesis.abort();
    for replica in &replicas {
        assert_eq!(replica.open_tickets(), 0, "tickets are left");
    }
}

/// C15: a message for which nobody competes costs two requests, as the server logs them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_message_costs_two_requests() {
    let logged = ["--general-log=1", "--log-output=TABLE"];
    let Some(server) = PrivateServer::start(&logged).await else { return support::skip() };
    let replica = replica(MysqlStore::connect(server.url()).max_connections(2)).await;
    // The server was just made: this one asks until grace is over.
    take(&replica, "k").await.release().await.unwrap();
    let mut behind = server.connection().await;
    behind.execute("TRUNCATE TABLE mysql.general_log").await.unwrap();
    for message in 0..20 {
        take(&replica, ["k", "l", "m"][message % 3]).await.release().await.unwrap();
    }
    let log = "SELECT CAST(CONCAT(command_type, ' ', argument) AS BINARY) FROM mysql.general_log";
    let log: Vec<Vec<u8>> = sqlx::query_scalar(log).fetch_all(&mut behind).await.unwrap();
    let log = log.iter().map(|entry| String::from_utf8_lossy(entry));
    let log: Vec<_> = log
        .filter(|entry| {
            entry.contains("coordination_turns SET")
                || entry.contains("INTO botmesh_coordination_turns")
                || entry.contains("FROM botmesh_coordination_turns")
        })
        .collect();
    let count = |begins: &str| log.iter().filter(|entry| entry.starts_with(begins)).count();
    // One text with two statements, and one that is prepared. Heartbeats read no turn, but share
    // their statement with what does.
    assert_eq!(count("Query INSERT"), 20);
    assert_eq!(count("Execute UPDATE"), 20);
    assert_eq!(log.len() - count("Execute SELECT 0") - count("Prepare"), 40, "{log:#?}");
}

/// C4: a reservation whose answer was lost is one place in the queue, not two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_whose_answer_was_lost_is_one_ticket() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Mysql, server.port).await;
    let a = replica(MysqlStore::connect(proxy.url())).await;
    let b = replica(MysqlStore::connect(server.url())).await;
    take(&a, "first").await.release().await.unwrap();
    for round in 0..5 {
        proxy.lose_next_answer();
        let turn = take(&a, "k").await;
        assert!(proxy.has_lost_all(), "no answer was lost");
        let ticket = b.reserve(&chat("k")).await.unwrap();
        let begun = Instant::now();
        proxy.lose_next_answer();
        turn.release().await.unwrap();
        acquire(&b, ticket).await.release().await.unwrap();
        assert!(begun.elapsed() < LEASE / 3, "round {round}: after {:?}", begun.elapsed());
    }
    assert_eq!((a.open_tickets(), b.open_tickets()), (0, 0));
}

/// C6: a server that waits for its disk has forgotten nothing when it is killed and started again:
/// holders and places are as before, and nothing else has to wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_takes_no_turn_from_its_holder_and_no_place_in_the_queue() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    // Longer than a busy machine takes to start a server.
    let lease = LEASE * 8;
    let [a, b] = [(); 2].map(|()| replica_with(MysqlStore::connect(server.url()), lease));
    a.start().await.unwrap();
    b.start().await.unwrap();
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    server.kill();
    let restarted = Instant::now();
    server.start_again().await;
    let other = take(&b, "free").await;
    assert!(restarted.elapsed() < lease, "granted after {:?}", restarted.elapsed());
    assert!(turn.check().is_ok(), "{:?}", turn.check());
    let fence = turn.fence();
    turn.release().await.unwrap();
    let next = acquire(&b, ticket).await;
    assert_eq!(next.previous_fence(), Some(fence));
    assert!(next.fence() > fence);
    drop(other);
}

/// C6: a server that does not wait for its disk may have forgotten what it granted last: after a
/// restart it grants nothing until whoever held a turn has given it up, and nobody keeps one.
/// C9: the fence of the next turn is higher all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_have_forgotten_grants_nothing_beside_an_old_holder() {
    let forgetful = ["--innodb-flush-log-at-trx-commit=0"];
    let Some(mut server) = PrivateServer::start(&forgetful).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Mysql, server.port).await;
    let a = replica(MysqlStore::connect(proxy.url())).await;
    let b = replica(MysqlStore::connect(server.url())).await;
    let mut last = Fence::new(0);
    for round in 0..3 {
        let (turn, kept) = (take(&a, "k").await, take(&b, "kept").await);
        assert!(turn.fence() > last, "fence {} after {last}", turn.fence());
        last = turn.fence();
        // That it was given back may be forgotten too.
        take(&b, "free").await.release().await.unwrap();
        // It believes in its turn until its own deadline, for it hears nothing of the restart.
        proxy.freeze(true);
        server.kill();
        let restarted = Instant::now();
        server.start_again().await;
        let other = take(&b, "free").await;
        assert!(turn.check().is_err() && kept.check().is_err(), "two could hold one chat");
        assert!(restarted.elapsed() > LEASE, "round {round}: granted without grace");
        other.release().await.unwrap();
        proxy.freeze(false);
        // The replica comes back as another incarnation.
        let again = take(&a, "k").await;
        assert!(again.fence() > last, "fence {} after {last}", again.fence());
        again.release().await.unwrap();
    }
}

/// C6: a replica whose runtime is stuck loses its turns, although its heartbeat could go on, and
/// one that is only busy keeps them.
#[test]
fn a_stuck_runtime_loses_its_turns_and_a_busy_one_keeps_them() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let store = || MysqlStore::connect(&url).prefix(&prefix).max_connections(4);
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
        let again = take(&a, "other").await;
        again.release().await.unwrap();
    });
    drop(next);
}

/// C9, C13: whatever replicas leave behind, by a crash or otherwise, is removed when its time is
/// over, and what is held or remembered stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_behind_is_removed() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let a = replica(support::direct().unwrap().prefix(&prefix)).await;
    for name in ["old", "free"] {
        take(&a, name).await.release().await.unwrap();
    }
    let held = take(&a, "held").await;
    let mut behind = support::plain(&url).await;
    // It was used half an hour ago, and remembered for ten minutes.
    let age = format!(
        "UPDATE {prefix}coordination_turns
        SET expires_at = expires_at - 1800000000, used = used - 3 WHERE name = 'chat:suite:old'"
    );
    behind.execute(AssertSqlSafe(age)).await.unwrap();
    // The first heartbeat of each replica sweeps.
    let dead = replica(support::direct().unwrap().prefix(&prefix)).await;
    let deadline = Instant::now() + LEASE * 8;
    let mut wait = async |count: String, wanted: i64| loop {
        let count = sqlx::query_scalar::<_, i64>(AssertSqlSafe(count.clone()));
        if count.fetch_one(&mut behind).await.unwrap() == wanted {
            break;
        }
        assert!(Instant::now() < deadline, "something stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    wait(format!("SELECT COUNT(*) FROM {prefix}coordination_turns"), 2).await;
    assert!(held.check().is_ok());
    // The session of the dead is buried by the heartbeats of the living.
    dead.abandon();
    wait(format!("SELECT COUNT(*) FROM {prefix}coordination_sessions"), 1).await;
    assert!(held.check().is_ok());
}

/// C16: what does not fit is refused at the start, with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_fit_is_refused() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let refusal = async |url: &str| {
        let coordinator = MysqlCoordinator::connect(url).build().unwrap();
        match coordinator.start().await {
            Err(CoordinationError::Unfit { reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let url = server.url();
    let text = refusal(&url.replace("bot@", "nobody@")).await;
    assert!(text.contains("correct the user and the password"), "{text}");
    let text = refusal(&url.replace("/bots", "/absent")).await;
    assert!(text.contains("name another"), "{text}");
    support::user(&server, "guest", "SELECT, INSERT, UPDATE, DELETE ON bots.*").await;
    let guest = url.replace("bot@", "guest@");
    let text = refusal(&guest).await;
    assert!(text.contains("grant this user"), "{text}");
    // Once somebody who may has made the tables, they suffice.
    for url in [&url, &guest] {
        let coordinator = MysqlCoordinator::connect(url).build().unwrap();
        coordinator.start().await.unwrap();
        coordinator.stop().await.unwrap();
    }
    let mut behind = server.connection().await;
    behind.execute("SET GLOBAL read_only = 1").await.unwrap();
    let text = refusal(&url).await;
    assert!(text.contains("replica or read-only"), "{text}");
    behind.execute("SET GLOBAL read_only = 0").await.unwrap();
    let newer = "UPDATE bots.botmesh_meta SET value = 999 WHERE name = 'coordination'";
    behind.execute(newer).await.unwrap();
    let text = refusal(&url).await;
    assert!(text.contains("999") && text.contains("upgrade the program"), "{text}");
}
