//! What is allocated: for each message, and for each chat that is idle or waits.

use std::alloc::System;

use anyhow::Result;
use botmesh_core::id::ProviderId;
use serde::{Deserialize, Serialize};
use stats_alloc::{Region, StatsAlloc};

use crate::{Workload, feed};

/// So many messages are in work at the same time while the memory of chats is measured.
const BATCH: u64 = 100;

/// What one kind of work allocates.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Memory {
    /// Allocations for each message, without those for the message itself.
    pub allocations: f64,
    /// Allocations for the message itself: its chat key, id and text.
    pub of_message: f64,
    /// Bytes that stay allocated for each chat that has written once.
    pub bytes_per_chat: f64,
    /// By how many bytes the resident memory of the process grew for each of them.
    pub resident_per_chat: Option<f64>,
}

/// Measures with `allocator`, which has to be that of the process. It must not have measured
/// before: memory that was given back counts as resident still.
///
/// # Errors
/// When the bot cannot be started or does not answer.
pub async fn measure(
    allocator: &StatsAlloc<System>,
    workload: Workload,
    chats: u64,
    messages: u64,
) -> Result<Memory> {
    let mut bench = workload.start(chats).await?;
    let before = resident();
    let mut region = Region::new(allocator);
    bench.driver.deliver(chats, BATCH).await?;
    bench.idle().await;
    let kept = region.change_and_reset();
    let resident_per_chat =
        resident().zip(before).map(|(after, before)| ratio(after.saturating_sub(before), chats));
    bench.driver.deliver(messages, BATCH).await?;
    bench.idle().await;
    let all = region.change_and_reset();
    bench.stop().await;

    let provider = ProviderId::new("feed")?;
    region.reset();
    for number in 0..messages {
        drop(feed::message(&provider, number, chats)?);
    }
    let of_message = region.change();
    let allocations = ratio(count(all.allocations), messages);
    let of_message = ratio(count(of_message.allocations), messages);
    let bytes = kept.bytes_allocated.saturating_sub(kept.bytes_deallocated);
    Ok(Memory {
        allocations: allocations - of_message,
        of_message,
        bytes_per_chat: ratio(count(bytes), chats),
        resident_per_chat,
    })
}

/// The resident memory of this process in bytes, where the system tells it as Linux does.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[allow(clippy::cast_precision_loss, reason = "the figures are shown with two digits")]
fn ratio(amount: u64, of: u64) -> f64 {
    amount as f64 / of as f64
}
