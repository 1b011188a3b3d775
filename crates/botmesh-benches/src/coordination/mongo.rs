//! What the coordinator on MongoDB costs, beside two bare operations at the same server in the same
//! run. The server is the reader's own: what stands in for MongoDB in tests is no measure of it.

mod bare;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator as _};
use botmesh_core::id::ChatKey;
use botmesh_mongo_store::{MongoCoordinator, MongoStore};
use tokio::task::JoinSet;

use super::latency::{Times, tell};
use super::report::Report;
use super::{Figure, Options, chat};
use crate::spread::{Spread, rate};
use bare::BareClient;

/// Where the server is.
const URL: &str = "BOTMESH_TEST_MONGO_URL";
/// The database of the bench, which is dropped before and after it.
const DATABASE: &str = "botmesh_bench";
/// Connections of all replicas together, and of the bare client.
const CONNECTIONS: u32 = 32;
/// Messages that are under way at once.
const AT_ONCE: usize = 64;
const BARE: &str = "two bare operations, same driver";
const ONE: &str = "one bare operation";

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    let url = std::env::var(URL).with_context(|| {
        format!("set {URL} to the URL of a MongoDB whose {DATABASE} may be dropped")
    })?;
    let bare = BareClient::open(&url).await?;
    ensure!(!bare.is_stand_in().await?, "this is a stand-in for MongoDB: its figures say nothing");
    for &chats in &options.chats {
        let keys: Arc<[ChatKey]> = (0..chats).map(chat).collect::<Result<_>>()?;
        for &count in &options.replicas {
            throughput(&url, &bare, &keys, count, options, report).await?;
        }
    }
    if !options.throughput_only {
        latency(&url, &bare, options, report).await?;
    }
    bare.drop_everything().await
}

async fn replica(url: &str, connections: u32) -> Result<Arc<MongoCoordinator>> {
    let store = MongoStore::connect(url).database(DATABASE).max_connections(connections);
    let replica = MongoCoordinator::through(store).build()?;
    replica.start().await?;
    // A space that was just made grants nothing for a lease.
    take(&replica, &ChatKey::decode("bench:warm")?).await?.release().await?;
    Ok(Arc::new(replica))
}

async fn take(replica: &MongoCoordinator, chat: &ChatKey) -> Result<ChatTurn> {
    let ticket = replica.reserve(chat).await?;
    Ok(replica.acquire_turn(ticket, AcquireTurn::new()).await?)
}

async fn throughput(
    url: &str,
    bare: &BareClient,
    keys: &Arc<[ChatKey]>,
    count: usize,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut replicas = Vec::new();
    for _ in 0..count {
        replicas.push(replica(url, CONNECTIONS / u32::try_from(count)?).await?);
    }
    // So that all rows are there, on both sides.
    coordinate(&replicas, keys, keys.len() as u64).await?;
    bare.run(keys, keys.len() as u64).await?;
    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    // In turn, so that whatever else the machine does slows both alike.
    for _ in 0..options.rounds {
        limits.push(rate(options.messages, bare.run(keys, options.messages).await?));
        ours.push(rate(options.messages, coordinate(&replicas, keys, options.messages).await?));
    }
    for replica in replicas {
        replica.stop().await?;
    }
    let median = |rates: &[f64]| Spread::of(rates).map(|spread| spread.median);
    report.add(Figure {
        what: format!("coordinated messages, {} chats, {count} replicas", keys.len()),
        ours: median(&ours).context("nothing was measured")?,
        unit: "/s",
        limit: Some((BARE, median(&limits).context("nothing was measured")?)),
        goal: "",
    });
    Ok(())
}

/// Takes and releases the turns of `messages` messages, one chat after the other.
async fn coordinate(
    replicas: &[Arc<MongoCoordinator>],
    keys: &Arc<[ChatKey]>,
    messages: u64,
) -> Result<Duration> {
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut workers = JoinSet::new();
    for replica in replicas.iter().cycle().take(AT_ONCE) {
        let (replica, keys, next) = (Arc::clone(replica), Arc::clone(keys), Arc::clone(&next));
        workers.spawn(async move {
            loop {
                let message = next.fetch_add(1, Ordering::Relaxed);
                if message >= messages {
                    return anyhow::Ok(());
                }
                let index = usize::try_from(message)? % keys.len();
                take(&replica, &keys[index]).await?.release().await?;
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(begun.elapsed())
}

async fn latency(
    url: &str,
    bare: &BareClient,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, second) = (replica(url, 4).await?, replica(url, 4).await?);
    let key = chat(0)?;
    let (mut grants, mut hand_overs, mut operations) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.samples {
        operations.push(bare.one(&key).await?);
        let begun = Instant::now();
        let turn = take(&first, &key).await?;
        grants.push(begun.elapsed());
        let ticket = second.reserve(&key).await?;
        let release = async {
            // Once the other has begun to wait.
            tokio::task::yield_now().await;
            let begun = Instant::now();
            turn.release().await?;
            anyhow::Ok(begun)
        };
        let wait = async {
            let turn = second.acquire_turn(ticket, AcquireTurn::new()).await?;
            anyhow::Ok((Instant::now(), turn))
        };
        let ((running, turn), begun) = tokio::try_join!(wait, release)?;
        turn.release().await?;
        hand_overs.push(running.saturating_duration_since(begun));
    }
    let operations = Times::of(operations)?;
    let limit = (ONE, &operations);
    tell(report, "reserve to grant, free chat", &Times::of(grants)?, limit, ["", ""]);
    let hand_overs = Times::of(hand_overs)?;
    tell(report, "hand-over by change stream", &hand_overs, limit, ["", ""]);
    first.stop().await?;
    second.stop().await?;
    Ok(())
}
