//! What happens to turns when connections, servers and runtimes fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings, LossReason};
use botmesh_postgres_store::{PostgresCoordinator, PostgresStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::replica::{LEASE, acquire, chat, take};
use botmesh_test_support::wire::Wire;
use sqlx::{Executor as _, PgConnection};
use support::replica::{replica, replica_with};
use support::server::PrivateServer;

/// Takes turns on all replicas at once and checks that no two overlap and that fences grow.
async fn work(replicas: &[Arc<PostgresCoordinator>], rounds: u32) {
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

async fn replicas(server: &PrivateServer, lease: Duration) -> Vec<Arc<PostgresCoordinator>> {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        let replica = replica_with(PostgresStore::connect(server.url()), lease);
        replica.start().await.unwrap();
        replicas.push(Arc::new(replica));
    }
    // Grace: the server was just made.
    take(&replicas[0], "first").await.release().await.unwrap();
    replicas
}

async fn cut(behind: &mut PgConnection, which: &str) -> i64 {
    let cut = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND application_name {which}"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(cut)).fetch_one(behind).await.unwrap()
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
            for which in ["= 'botmesh listens'", "= 'botmesh'"].iter().cycle() {
                let cut = cut(&mut behind, which).await;
                cuts.fetch_add(u32::try_from(cut).unwrap(), Ordering::Relaxed);
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

/// C14: after its connection was cut, a waiting replica is woken by a notification again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_again_after_their_connection_was_cut() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let replicas = replicas(&server, LEASE).await;
    let mut behind = server.connection().await;
    let listening = cut(&mut behind, "= 'botmesh listens'").await;
    assert_eq!(listening, 3, "each replica has one connection that listens");
    // While nobody asks anything, the connections come back by themselves.
    let deadline = Instant::now() + Duration::from_secs(10);
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'botmesh listens' AND query LIKE 'LISTEN%' AND state = 'idle'";
    while sqlx::query_scalar::<_, i64>(count).fetch_one(&mut behind).await.unwrap() < 3 {
        assert!(Instant::now() < deadline, "a replica does not listen again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut quick = 0;
    for _ in 0..10 {
        let turn = take(&replicas[0], "k").await;
        let ticket = replicas[1].reserve(&chat("k")).await.unwrap();
        let next = acquire(&replicas[1], ticket);
        let release = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            turn.release().await.unwrap();
            Instant::now()
        };
        let (next, released) = tokio::join!(next, release);
        quick += u32::from(released.elapsed() < Duration::from_millis(100));
        next.release().await.unwrap();
    }
    // A poll comes 250 ms after the ticket was reserved.
    assert!(quick >= 8, "only {quick} of 10 hand-overs were pushed");
}

/// C14: through a pooler nothing can be listened to, and polling does it all; with the address of
/// the server itself wake-ups arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_pooler_tickets_poll_unless_there_is_a_direct_way() {
    let (Some(pooled), Some(url)) = (support::pooled(), support::url()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let settings = CoordinatorSettings::builder().lease(LEASE).build().unwrap();
    let open = |direct: bool| {
        let mut builder = PostgresCoordinator::through(pooled.clone().prefix(&prefix));
        if direct {
            builder = builder.direct(&url);
        }
        builder.settings(settings.clone()).build().unwrap()
    };
    let (a, polling, woken) = (open(false), open(false), open(true));
    for replica in [&a, &polling, &woken] {
        replica.start().await.unwrap();
    }
    let channels =
        format!("SELECT count(channel) FROM {prefix}coordination_sessions WHERE channel <> ''");
    let mut behind = support::plain(&url).await;
    let channels: i64 =
        sqlx::query_scalar(sqlx::AssertSqlSafe(channels)).fetch_one(&mut behind).await.unwrap();
    assert_eq!(channels, 1, "only one can be woken");
    for (replica, limit) in [(&polling, 400), (&woken, 140)] {
        let mut quick = 0;
        for _ in 0..5 {
            let turn = take(&a, "k").await;
            let ticket = replica.reserve(&chat("k")).await.unwrap();
            let (next, released) = tokio::join!(acquire(replica, ticket), async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                turn.release().await.unwrap();
                Instant::now()
            });
            quick += u32::from(released.elapsed() < Duration::from_millis(limit));
            next.release().await.unwrap();
        }
        assert!(quick >= 4, "only {quick} of 5 hand-overs within {limit} ms");
    }
}

/// C15: a message for which nobody competes costs two calls, as the server counts them, and tells
/// nobody anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_message_costs_two_calls() {
    let Some(server) = PrivateServer::start(&["track_functions=pl"]).await else {
        return support::skip();
    };
    let replica = replica(PostgresStore::connect(server.url()).max_connections(2)).await;
    // The server was just made: this one asks until grace is over.
    take(&replica, "k").await.release().await.unwrap();
    for message in 0..20 {
        take(&replica, ["k", "l", "m"][message % 3]).await.release().await.unwrap();
    }
    replica.stop().await.unwrap();
    // The counts are told when the connections end.
    drop(replica);
    let mut behind = server.connection().await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'botmesh%'";
    let deadline = Instant::now() + Duration::from_secs(10);
    while sqlx::query_scalar::<_, i64>(open).fetch_one(&mut behind).await.unwrap() > 0 {
        assert!(Instant::now() < deadline, "a connection stays open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut calls = async |name: &str| {
        let calls = "SELECT coalesce(sum(calls), 0)::BIGINT FROM pg_stat_user_functions
            WHERE funcname = 'botmesh_coordination_' || $1";
        sqlx::query_scalar::<_, i64>(calls).bind(name).fetch_one(&mut behind).await.unwrap()
    };
    let asked = calls("ask").await;
    assert!((21..40).contains(&asked), "{asked} calls");
    assert_eq!(calls("release").await, 21);
    assert_eq!(calls("wake").await, 0);
}

/// C4: a reservation whose answer was lost is one place in the queue, not two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_whose_answer_was_lost_is_one_ticket() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Postgres, server.port).await;
    let a = replica(PostgresStore::connect(proxy.url())).await;
    let b = replica(PostgresStore::connect(server.url())).await;
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

/// C6: after a restart of the server that kept its tables, the holder goes on, and nothing is
/// granted beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_with_data_takes_no_turn_from_its_holder() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    // Longer than a busy machine takes to stop a server and to start it.
    let lease = LEASE * 6;
    let [a, b] = [(); 2].map(|()| replica_with(PostgresStore::connect(server.url()), lease));
    a.start().await.unwrap();
    b.start().await.unwrap();
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    server.stop();
    let restarted = Instant::now();
    server.start_again().await;
    assert!(turn.check().is_ok(), "lost at once");
    // A free chat must wait too: the server might have forgotten that it was granted.
    let other = take(&b, "free").await;
    assert!(restarted.elapsed() > lease, "granted without grace");
    assert!(turn.check().is_ok(), "{:?}", turn.check());
    let fence = turn.fence();
    turn.release().await.unwrap();
    let next = acquire(&b, ticket).await;
    assert_eq!(next.previous_fence(), Some(fence));
    assert!(next.fence() > fence);
    drop(other);
}

/// C6: after a crash of the server, which empties the tables, whoever held a turn has given it up before another one
/// gets it.
/// C9: the fence of the next turn is higher all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_grants_nothing_beside_an_old_holder() {
    let Some(mut server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Postgres, server.port).await;
    let a = replica(PostgresStore::connect(proxy.url())).await;
    let b = replica(PostgresStore::connect(server.url())).await;
    let turn = take(&a, "k").await;
    let (guard, fence) = (turn.guard(), turn.fence());
    // It believes in its turn until its own deadline, for it hears nothing of the restart.
    proxy.freeze(true);
    server.kill();
    server.start_again().await;
    let next = take(&b, "k").await;
    assert!(guard.check().is_err(), "two hold one chat");
    assert!(next.fence() > fence, "fence {} after {fence}", next.fence());
    assert_eq!(next.previous_holder(), None, "the server has forgotten it");
    proxy.freeze(false);
    next.release().await.unwrap();
    // The replica comes back as another incarnation.
    let again = take(&a, "k").await;
    assert_ne!(again.incarnation(), None);
    again.release().await.unwrap();
}

/// C6: a replica whose runtime is stuck loses its turns, although its heartbeat could go on, and
/// one that is only busy keeps them.
#[test]
fn a_stuck_runtime_loses_its_turns_and_a_busy_one_keeps_them() {
    let Some(url) = support::url() else { return support::skip() };
    let prefix = support::prefix();
    let store = || PostgresStore::connect(&url).prefix(&prefix).max_connections(4);
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
    let dead = replica(support::direct().unwrap().prefix(&prefix)).await;
    dead.abandon();
    let mut behind = support::plain(&url).await;
    // It was used half an hour ago, and remembered for ten minutes.
    let age = format!(
        "UPDATE {prefix}coordination_turns
        SET expires_at = expires_at - 1800000000, used = used - 3 WHERE name = 'chat:suite:old'"
    );
    behind.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(age))).await.unwrap();
    let sweep = format!("SELECT {prefix}coordination_sweep(1000)");
    let removed: i64 =
        sqlx::query_scalar(sqlx::AssertSqlSafe(sweep)).fetch_one(&mut behind).await.unwrap();
    assert_eq!(removed, 1);
    let kept =
        format!("SELECT convert_from(name, 'UTF8') FROM {prefix}coordination_turns ORDER BY name");
    let kept: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(kept)).fetch_all(&mut behind).await.unwrap();
    assert_eq!(kept, ["chat:suite:free", "chat:suite:held"]);
    assert!(held.check().is_ok());
    // The session of the dead is buried by the heartbeats of the living.
    let sessions = format!("SELECT count(*) FROM {prefix}coordination_sessions");
    let deadline = Instant::now() + LEASE * 8;
    while sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sessions.clone()))
        .fetch_one(&mut behind)
        .await
        .unwrap()
        > 1
    {
        assert!(Instant::now() < deadline, "a dead session stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
