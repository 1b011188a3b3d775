//! What the coordinator on PostgreSQL costs, each figure beside the limit that was measured in the
//! same run.

mod bare;
mod processor;
pub(crate) mod server;
mod throughput;
mod upkeep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};
use botmesh_core::id::ChatKey;
use botmesh_postgres_store::{Pooler, PostgresCoordinator, PostgresStore};

use super::fleet::Postgres;
use super::latency::{Times, tell};
use super::report::Report;
use super::{Options, chat, fail_over, hand_over, take};
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
    // Of its own, so that the replicas of before, whose leases are longer, do not matter.
    let server = PrivateServer::start().await?;
    fail_over::measure(&Postgres { url: server.url() }, options, report).await?;
    upkeep::measure(options, report).await
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
        let turn = take(&*first, &key).await?;
        grants.push(begun.elapsed());
        turn.release().await?;
    }
    let (grants, selects) = (Times::of(grants)?, Times::of(selects)?);
    tell(report, "reserve to grant, free chat", &grants, (SELECT, &selects), ["", ""]);

    let mut bare = BareNotifier::open(server).await?;
    let (mut ours, mut notified) = (Vec::new(), Vec::new());
    for _ in 0..options.samples {
        notified.push(bare.notify().await?);
        ours.push(hand_over(&*first, &*second).await?);
    }
    let (ours, notified) = (Times::of(ours)?, Times::of(notified)?);
    let goals = ["p50 <= 2 ms", ""];
    tell(report, "hand-over by NOTIFY, release to running", &ours, (NOTIFY, &notified), goals);
    second.stop().await?;

    // As through a pooler: statements are not prepared, and nothing is listened to.
    let polling = replica(server, 4, Pooler::Present).await?;
    let mut times = Vec::new();
    for _ in 0..options.samples / 10 {
        times.push(hand_over(&*first, &*polling).await?);
    }
    let times = Times::of(times)?;
    tell(report, "hand-over by poll each 5 ms", &times, (NOTIFY, &notified), ["", ""]);
    polling.stop().await?;
    first.stop().await?;
    Ok(())
}
