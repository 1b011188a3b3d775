//! What happens to turns when connections, scripts, servers and runtimes fail.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use botmesh_core::coordination::{Coordinator as _, LossReason};
use botmesh_redis_store::{RedisCoordinator, RedisStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::replica::{LEASE, acquire, chat, take};
use botmesh_test_support::wire::Wire;
use support::PrivateServer;
use support::replica::{replica, replica_with};

/// Takes turns on all replicas at once and checks that no two overlap and that fences grow.
async fn work(replicas: &[Arc<RedisCoordinator>], rounds: u32) {
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

async fn replicas(server: &PrivateServer) -> Vec<Arc<RedisCoordinator>> {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(Arc::new(replica(RedisStore::connect(server.url())).await));
    }
    // Grace: the server was just made.
    take(&replicas[0], "first").await.release().await.unwrap();
    replicas
}

/// C3: connections that are cut and scripts that are forgotten lose no turn and double none.
/// C2: although all replicas have the same id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_and_forgotten_scripts_cost_no_turn() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let replicas = replicas(&server).await;
    let mut behind = server.connection().await;
    let cuts = Arc::new(AtomicU32::new(0));
    let nemesis = tokio::spawn({
        let cuts = Arc::clone(&cuts);
        async move {
            let kill = |kind| ["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"];
            for words in [&["SCRIPT", "FLUSH"][..], &kill("pubsub"), &kill("normal")].iter().cycle()
            {
                let _ = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut behind).await;
                cuts.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    // However fast the machine is: until the work was disturbed often enough.
    while cuts.load(Ordering::Relaxed) <= 10 {
        work(&replicas, 30).await;
    }
    nemesis.abort();
    for replica in &replicas {
        assert_eq!(replica.open_tickets(), 0, "tickets are left");
    }
}

/// C14: after its connection was cut, a waiting replica is woken by a push again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_come_again_after_their_connection_was_cut() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let replicas = replicas(&server).await;
    let mut behind = server.connection().await;
    let mut kill = redis::cmd("CLIENT");
    kill.arg(&["KILL", "TYPE", "pubsub"]);
    let cut: u32 = kill.query_async(&mut behind).await.unwrap();
    assert_eq!(cut, 3, "each replica has one connection that listens");
    // While nobody asks anything, the connections come back by themselves.
    let deadline = Instant::now() + Duration::from_secs(5);
    let subscribed = async |behind: &mut redis::aio::MultiplexedConnection| {
        let channels: Vec<String> =
            redis::cmd("PUBSUB").arg("CHANNELS").query_async(behind).await.unwrap();
        channels.len()
    };
    while subscribed(&mut behind).await < 3 {
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
        quick += u32::from(released.elapsed() < Duration::from_millis(60));
        next.release().await.unwrap();
    }
    // A poll comes 100 ms after the ticket was reserved.
    assert!(quick >= 8, "only {quick} of 10 hand-overs were pushed");
}

/// C14: where a proxy speaks RESP2 only, no push can arrive, and polling does it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_pushes_tickets_poll() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let old = || RedisStore::connect(format!("{}/?protocol=resp2", server.url()));
    let (a, b) = (replica(old()).await, replica(old()).await);
    for _ in 0..3 {
        let turn = take(&a, "k").await;
        let ticket = b.reserve(&chat("k")).await.unwrap();
        let (next, released) = tokio::join!(acquire(&b, ticket), async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            turn.release().await.unwrap();
            Instant::now()
        });
        assert!(released.elapsed() < Duration::from_millis(400), "{:?}", released.elapsed());
        next.release().await.unwrap();
    }
}

/// C15: a message for which nobody competes costs two commands, as the server counts them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uncontended_message_costs_two_commands() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let mut behind = server.connection().await;
    // A space that is known to be new needs no grace.
    let about: String = redis::cmd("INFO").arg("server").query_async(&mut behind).await.unwrap();
    let run = about.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
    let mut found = redis::cmd("HSET");
    found.arg("botmesh:co:live").arg("#r").arg(run);
    found.exec_async(&mut behind).await.unwrap();
    let replica = replica_with(RedisStore::connect(server.url()), Duration::from_secs(600));
    replica.start().await.unwrap();
    take(&replica, "k").await.release().await.unwrap();
    redis::cmd("CONFIG").arg("RESETSTAT").exec_async(&mut behind).await.unwrap();
    for message in 0..20 {
        take(&replica, ["k", "l", "m"][message % 3]).await.release().await.unwrap();
    }
    let statistics: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut behind).await.unwrap();
    let calls = |command: &str| {
        let line = statistics.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let calls =
            line.and_then(|line| line.split("calls=").nth(1)?.split(',').next()?.parse().ok());
        calls.unwrap_or(0_u32)
    };
    assert_eq!(calls("evalsha"), 40, "{statistics}");
    assert_eq!(calls("eval") + calls("publish") + calls("ping"), 0, "{statistics}");
    replica.stop().await.unwrap();
}

/// C4: a reservation whose answer was lost is one place in the queue, not two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_whose_answer_was_lost_is_one_ticket() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let proxy = Proxy::start(Wire::Redis, server.port).await;
    let a = replica(RedisStore::connect(proxy.url())).await;
    let b = replica(RedisStore::connect(server.url())).await;
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

/// C6: after a restart of the server with its data, the holder goes on, and nothing is granted
/// beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_with_data_takes_no_turn_from_its_holder() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let Some(mut server) = PrivateServer::start(&arguments) else { return support::skip() };
    let a = replica(RedisStore::connect(server.url())).await;
    let b = replica(RedisStore::connect(server.url())).await;
    let turn = take(&a, "k").await;
    let ticket = b.reserve(&chat("k")).await.unwrap();
    server.kill();
    server.start_again();
    let restarted = Instant::now();
    assert!(turn.check().is_ok(), "lost at once");
    // A free chat must wait too: the server might have forgotten that it was granted.
    let other = take(&b, "free").await;
    assert!(restarted.elapsed() > LEASE - Duration::from_millis(250), "granted without grace");
    assert!(turn.check().is_ok(), "{:?}", turn.check());
    let fence = turn.fence();
    turn.release().await.unwrap();
    let next = acquire(&b, ticket).await;
    assert_eq!(next.previous_fence(), Some(fence));
    assert!(next.fence() > fence);
    drop(other);
}

/// C6: after a restart that lost the data, whoever held a turn has given it up before another one
/// gets it.
/// C9: the fence of the next turn is higher all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_without_data_grants_nothing_beside_an_old_holder() {
    let Some(mut server) = PrivateServer::start(&[]) else { return support::skip() };
    let proxy = Proxy::start(Wire::Redis, server.port).await;
    let a = replica(RedisStore::connect(proxy.url())).await;
    let b = replica(RedisStore::connect(server.url())).await;
    let turn = take(&a, "k").await;
    let (guard, fence) = (turn.guard(), turn.fence());
    // It believes in its turn until its own deadline, for it hears nothing of the restart.
    proxy.freeze(true);
    server.kill();
    server.start_again();
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
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (stuck, other) = (runtime(), runtime());
    let (a, turn) = stuck.block_on(async {
        let a = replica(RedisStore::connect(server.url())).await;
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
        let b = replica(RedisStore::connect(server.url())).await;
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

/// C9: whatever replicas leave behind, by a crash or otherwise, expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_that_is_left_behind_expires() {
    let Some(server) = PrivateServer::start(&[]) else { return support::skip() };
    let a = replica(RedisStore::connect(server.url()).prefix("shop")).await;
    let b = replica(RedisStore::connect(server.url()).prefix("shop")).await;
    let held = take(&a, "held").await;
    let waiting = b.reserve(&chat("held")).await.unwrap();
    take(&a, "free").await.release().await.unwrap();
    let led = a.try_lead(&botmesh_core::LeaderName::new("job").unwrap()).await.unwrap();
    assert!(led.is_some());
    a.abandon();
    b.abandon();
    drop((held, waiting, led));
    let mut behind = server.connection().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut behind).await.unwrap();
    assert_eq!(keys.len(), 6, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut behind).await.unwrap();
        assert!(key == "shop:meta" || left > 0, "{key} stays for ever");
    }
}
