//! What a coordinator costs, each figure beside the limit that was measured in the same
//! run.

mod bare;
mod counters;
mod fail_over;
mod latency;
mod options;
mod postgres;
mod report;
pub(crate) mod server;
mod throughput;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use botmesh_core::coordination::{AcquireTurn, ChatTurn, Coordinator as _, CoordinatorSettings};
use botmesh_core::id::ChatKey;
use botmesh_redis_store::RedisCoordinator;

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
    if options.backend == Backend::Postgres {
        return postgres::measure(options, &mut report).await;
    }
    let server = PrivateServer::start()?;
    throughput::measure(&server, options, &mut report).await?;
    if options.throughput_only {
        return Ok(());
    }
    latency::measure(&server, options, &mut report).await?;
    fail_over::measure(&server, options, &mut report).await?;
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
async fn take(replica: &RedisCoordinator, chat: &ChatKey) -> Result<ChatTurn> {
    let ticket = replica.reserve(chat).await?;
    Ok(replica.acquire_turn(ticket, AcquireTurn::new()).await?)
}
