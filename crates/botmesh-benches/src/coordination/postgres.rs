//! What the coordinator on PostgreSQL costs, each figure beside the limit that was measured in the
//! same run.

mod bare;
mod processor;
mod server;
mod throughput;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator as _, CoordinatorSettings};
use botmesh_core::id::ChatKey;
use botmesh_postgres_store::{Pooler, PostgresCoordinator, PostgresStore};
use sqlx::{AssertSqlSafe, Executor as _};

use super::latency::{Times, tell};
use super::report::Report;
use super::{Figure, Options, chat};
use bare::BareNotifier;
use server::PrivateServer;

/// Connections of all replicas together.
const CONNECTIONS: usize = 16;
const SELECT: &str = "SELECT 1 by the same driver";
const NOTIFY: &str = "NOTIFY between two connections";

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    let server = PrivateServer::start().await?;
    throughput::measure(&server, options, report).await?;
    if options.throughput_only {
        return Ok(());
    }
    latency(&server, options, report).await?;
    room(&server, options, report).await
}

async fn replica(
    server: &PrivateServer,
    connections: usize,
    pooler: Pooler,
) -> Result<Arc<PostgresCoordinator>> {
    let store = PostgresStore::connect(server.url());
    let store = store.prefix("bench_").max_connections(connections).pooler(pooler);
    // Where nothing can be listened to, tickets ask that often.
    let settings = CoordinatorSettings::builder().max_poll(Duration::from_millis(5)).build()?;
    let replica = PostgresCoordinator::through(store).settings(settings).build()?;
    replica.start().await?;
    // A server that was just made grants nothing for a lease.
    let warm = ChatKey::decode("bench:warm")?;
    take(&replica, &warm).await?.release().await?;
    Ok(Arc::new(replica))
}

async fn take(replica: &PostgresCoordinator, chat: &ChatKey) -> Result<ChatTurn> {
    let ticket = replica.reserve(chat).await?;
    Ok(replica.acquire_turn(ticket, AcquireTurn::new()).await?)
}

async fn latency(server: &PrivateServer, options: &Options, report: &mut Report<'_>) -> Result<()> {
    let first = replica(server, 4, Pooler::Absent).await?;
    let second = replica(server, 4, Pooler::Absent).await?;
    let mut connection = server.connection().await?;
    let (mut grants, mut selects) = (Vec::new(), Vec::new());
    for number in 0..options.samples {
        let begun = Instant::now();
        sqlx::query("SELECT 1").execute(&mut connection).await?;
        selects.push(begun.elapsed());
        let key = chat(number as u64)?;
        let begun = Instant::now();
        let turn = take(&first, &key).await?;
        grants.push(begun.elapsed());
        turn.release().await?;
    }
    let (grants, selects) = (Times::of(grants)?, Times::of(selects)?);
    tell(report, "reserve to grant, free chat", &grants, (SELECT, &selects), ["", ""]);

    let mut bare = BareNotifier::open(server).await?;
    let (mut ours, mut notified) = (Vec::new(), Vec::new());
    for _ in 0..options.samples {
        notified.push(bare.notify().await?);
        ours.push(hand_over(&first, &second).await?);
    }
    let (ours, notified) = (Times::of(ours)?, Times::of(notified)?);
    let goals = ["p50 <= 2 ms", ""];
    tell(report, "hand-over by NOTIFY, release to running", &ours, (NOTIFY, &notified), goals);
    second.stop().await?;

    // As through a pooler: statements are not prepared, and nothing is listened to.
    let polling = replica(server, 4, Pooler::Present).await?;
    let mut times = Vec::new();
    for _ in 0..options.samples / 10 {
        times.push(hand_over(&first, &polling).await?);
    }
    let times = Times::of(times)?;
    tell(report, "hand-over by poll each 5 ms", &times, (NOTIFY, &notified), ["", ""]);
    polling.stop().await?;
    first.stop().await?;
    Ok(())
}

/// How long it takes from the release of one replica until the other, which waits, runs.
async fn hand_over(from: &PostgresCoordinator, to: &PostgresCoordinator) -> Result<Duration> {
    let key = chat(0)?;
    let turn = take(from, &key).await?;
    let ticket = to.reserve(&key).await?;
    let release = async {
        // Once the other has begun to wait.
        tokio::task::yield_now().await;
        let begun = Instant::now();
        turn.release().await?;
        anyhow::Ok(begun)
    };
    let wait = async {
        let turn = to.acquire_turn(ticket, AcquireTurn::new()).await?;
        anyhow::Ok((Instant::now(), turn))
    };
    let ((running, turn), begun) = tokio::try_join!(wait, release)?;
    turn.release().await?;
    Ok(running.saturating_duration_since(begun))
}

/// What chats take at the server, and what holding them costs.
async fn room(server: &PrivateServer, options: &Options, report: &mut Report<'_>) -> Result<()> {
    let mut connection = server.connection().await?;
    connection.execute("VACUUM FULL bench_coordination_turns").await?;
    let size = "SELECT pg_total_relation_size('bench_coordination_turns')";
    let rows = "SELECT count(*) FROM bench_coordination_turns";
    let before: i64 = sqlx::query_scalar(size).fetch_one(&mut connection).await?;
    let known: i64 = sqlx::query_scalar(rows).fetch_one(&mut connection).await?;
    let replica = replica(server, CONNECTIONS, Pooler::Absent).await?;
    let mut held = Vec::new();
    for number in 0..options.held {
        held.push(take(&replica, &chat(1_000_000 + number)?).await?);
    }
    let after: i64 = sqlx::query_scalar(size).fetch_one(&mut connection).await?;
    let now: i64 = sqlx::query_scalar(rows).fetch_one(&mut connection).await?;
    let added = (now - known).max(1) as f64;
    report.add(Figure {
        what: format!("room of a chat, {} held", options.held),
        ours: (after - before) as f64 / added,
        unit: "bytes",
        limit: None,
        goal: "",
    });
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'botmesh%'";
    let open: i64 = sqlx::query_scalar(AssertSqlSafe(open)).fetch_one(&mut connection).await?;
    report.add(Figure {
        what: format!("connections of a replica, {} chats held", options.held),
        ours: open as f64,
        unit: "",
        limit: None,
        goal: "those of the pool, and two",
    });
    let writes = "SELECT CAST(coalesce(sum(n_tup_upd), 0) AS BIGINT) FROM pg_stat_user_tables
        WHERE relname LIKE 'bench_coordination%'";
    let before: i64 = sqlx::query_scalar(writes).fetch_one(&mut connection).await?;
    tokio::time::sleep(options.watched).await;
    let after: i64 = sqlx::query_scalar(writes).fetch_one(&mut connection).await?;
    report.add(Figure {
        what: format!("rows written while {} chats are held", options.held),
        ours: (after - before) as f64 / options.watched.as_secs_f64(),
        unit: "/s",
        limit: None,
        goal: "does not grow with the chats",
    });
    drop(held);
    replica.stop().await?;
    Ok(())
}
