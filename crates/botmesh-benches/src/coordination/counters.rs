//! What Redis counts itself.

use std::time::Duration;

use anyhow::{Context as _, Result};
use redis::aio::MultiplexedConnection;

/// Counters of a server at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    /// Script calls, each of which is a round trip of a client.
    pub(super) scripts: f64,
    /// Calls of commands that no script makes, other than those that read the counters.
    pub(super) others: f64,
    /// Processor time of the server in microseconds.
    pub(super) processor: f64,
    /// Processor time of this process in microseconds.
    pub(super) own_processor: f64,
    pub(super) bytes: f64,
    pub(super) keys: f64,
}

impl Counters {
    pub(super) async fn read(connection: &mut MultiplexedConnection) -> Result<Self> {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let spent = Duration::new(u64::try_from(spent.tv_sec)?, u32::try_from(spent.tv_nsec)?);
        let own_processor = spent.as_secs_f64() * 1e6;
        let mut counters = Self { own_processor, ..Self::default() };
        let information: String =
            redis::cmd("INFO").arg("everything").query_async(connection).await?;
        for line in information.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            match name {
                "used_cpu_sys" | "used_cpu_user" => {
                    counters.processor += value.parse::<f64>()? * 1e6;
                }
                "used_memory" => counters.bytes = value.parse()?,
                "cmdstat_evalsha" | "cmdstat_eval" => counters.scripts += calls(value)?,
                "cmdstat_ping" | "cmdstat_subscribe" | "cmdstat_hello" => {
                    counters.others += calls(value)?;
                }
                _ => {}
            }
        }
        counters.keys = redis::cmd("DBSIZE").query_async(connection).await?;
        Ok(counters)
    }

    /// What was counted since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            scripts: self.scripts - before.scripts,
            others: self.others - before.others,
            processor: self.processor - before.processor,
            own_processor: self.own_processor - before.own_processor,
            bytes: self.bytes - before.bytes,
            keys: self.keys - before.keys,
        }
    }
}

fn calls(statistics: &str) -> Result<f64> {
    let calls = statistics.split(',').find_map(|part| part.strip_prefix("calls="));
    Ok(calls.context("the server counts no calls")?.parse()?)
}
