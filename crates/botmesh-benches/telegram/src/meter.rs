//! What a contender took.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Counts replies, and looks at the clocks after the first of them and after the last.
#[derive(Debug)]
pub(crate) struct Meter {
    warm: u64,
    all: u64,
    replies: AtomicU64,
    begun: OnceLock<(Instant, Duration)>,
    ended: OnceLock<(Instant, Duration)>,
    last: Notify,
}

/// What a contender prints.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Measured {
    /// Updates that were answered.
    pub messages: u64,
    /// Seconds that passed.
    pub wall: f64,
    /// Seconds that the process computed.
    pub cpu: f64,
}

impl Meter {
    /// Of `all` replies, those after the first `warm` count.
    pub(crate) fn new(warm: u64, all: u64) -> Self {
        Self {
            warm,
            all,
            replies: AtomicU64::new(0),
            begun: OnceLock::new(),
            ended: OnceLock::new(),
            last: Notify::new(),
        }
    }

    pub(crate) fn reply(&self) {
        let count = self.replies.fetch_add(1, Ordering::Relaxed) + 1;
        if count == self.warm {
            let _ = self.begun.set(now());
        } else if count == self.all {
            let _ = self.ended.set(now());
            self.last.notify_one();
        }
    }

    /// Waits for the last reply.
    pub(crate) async fn measured(&self) -> Result<Measured> {
        let waiting = tokio::time::timeout(Duration::from_secs(300), self.last.notified());
        waiting.await.context("an update was not answered")?;
        let ended = self.ended.get().context("nothing was measured")?;
        let begun = self.begun.get().context("nothing was measured")?;
        Ok(Measured {
            messages: self.all - self.warm,
            wall: (ended.0 - begun.0).as_secs_f64(),
            cpu: ended.1.saturating_sub(begun.1).as_secs_f64(),
        })
    }
}

/// Now, and how long the process has computed.
fn now() -> (Instant, Duration) {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(spent.tv_nsec).unwrap_or_default();
    (Instant::now(), Duration::new(seconds, nanoseconds))
}
