use std::sync::atomic::{AtomicU64, Ordering};

use crate::id::Fence;
use crate::time::Clock;

/// The fences of turns that this process alone gives: microseconds since 1970 at its start, and
/// one more for each turn. So a later process begins higher, unless this one gave more than a
/// million turns a second all its life or the machine's clock was set back; a store that has seen
/// a higher fence corrects it by [`observe`](Self::observe).
pub(crate) struct LocalFences(AtomicU64);

impl LocalFences {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(Clock::system().now_micros()))
    }

    pub(crate) fn next(&self) -> Fence {
        Fence::new(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// From now on gives only fences above `seen`.
    pub(crate) fn observe(&self, seen: Fence) {
        self.0.fetch_max(seen.get(), Ordering::Relaxed);
    }
}
