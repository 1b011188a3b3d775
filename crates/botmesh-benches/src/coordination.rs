//! What a coordinator costs, each figure beside the limit that was measured in the same
//! run.

mod bare;
mod connections;
mod counters;
mod fail_over;
mod fleet;
mod latency;
pub(crate) mod mongo;
pub(crate) mod mysql;
mod options;
pub(crate) mod postgres;
mod processor;
mod report;
pub(crate) mod server;
mod statements;
mod throughput;
mod upkeep;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator, CoordinatorSettings};
use botmesh_core::id::ChatKey;
use botmesh_redis_store::RedisCoordinator;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

pub use options::{Backend, Options, USAGE};
pub use report::Figure;
use report::Report;
use server::PrivateServer;

/// The lease where it is waited for. Short, so that a run need not last minutes.
const SHORT_LEASE: Duration = Duration::from_secs(1);

/// Measures everything. Each figure goes to `told` as soon as it is known.
///
/// # Errors
/// When the server cannot be started, or something that is to be measured does not happen.
pub async fn measure(options: &Options, told: impl Fn(&Figure)) -> Result<()> {
    let mut report = Report::new(told);
    match options.backend {
        Backend::Postgres => return postgres::measure(options, &mut report).await,
        Backend::Mysql => return mysql::measure(options, &mut report).await,
        Backend::Mongo => return mongo::measure(options, &mut report).await,
        Backend::Redis => {}
    }
    let server = PrivateServer::start()?;
    throughput::measure(&server, options, &mut report).await?;
    if options.throughput_only {
        return Ok(());
    }
    latency::measure(&server, options, &mut report).await?;
    fail_over::measure(&fleet::Redis { url: server.url() }, options, &mut report).await?;
    upkeep::measure(options, &mut report).await
}

/// A started replica with the lease that replicas have by default.
async fn replica(url: &str) -> Result<Arc<RedisCoordinator>> {
    replica_with(url, CoordinatorSettings::default()).await
}

/// A started replica with a lease that runs out soon.
async fn short_lived(url: &str) -> Result<Arc<RedisCoordinator>> {
    replica_with(url, CoordinatorSettings::builder().lease(SHORT_LEASE).build()?).await
}

async fn replica_with(url: &str, settings: CoordinatorSettings) -> Result<Arc<RedisCoordinator>> {
    let replica = RedisCoordinator::connect(url).prefix("bench").settings(settings).build()?;
    replica.start().await?;
    Ok(Arc::new(replica))
}

fn chat(number: u64) -> Result<ChatKey> {
    Ok(ChatKey::decode(&format!("bench:{}", 1_000_000_000 + number))?)
}

/// Reserves and waits.
async fn take(replica: &impl Coordinator, chat: &ChatKey) -> Result<ChatTurn> {
    let ticket = replica.reserve(chat).await?;
    Ok(replica.acquire_turn(ticket, AcquireTurn::new()).await?)
}

/// How long it takes from the release of one replica until the other, which waits, runs.
async fn hand_over(from: &impl Coordinator, to: &impl Coordinator) -> Result<Duration> {
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

/// Takes so many chats, many at the same time.
async fn take_all<C: Coordinator + 'static>(replica: &Arc<C>, held: u64) -> Result<Vec<ChatTurn>> {
    const AT_ONCE: usize = 256;
    let turns = (0..held).map(|number| {
        let replica = Arc::clone(replica);
        async move { take(&*replica, &chat(number)?).await }
    });
    stream::iter(turns).buffer_unordered(AT_ONCE).try_collect().await
}
