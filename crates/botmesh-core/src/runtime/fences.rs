use std::sync::atomic::{AtomicU64, Ordering};

use crate::id::Fence;
use crate::time::Clock;

/// The fences of turns that this process alone gives: microseconds since 1970 at its start, and
/// one more for each turn. So a later process begins higher, unless this one gave more than a
/// million turns a second all its life or the machine's clock was set back; a store that has seen
/// a higher fence corrects it by [`observe`](Self::observe).
pub(crate) struct LocalFences {
    last: AtomicU64,
    /// What a turn that began below a fence seen in the store writes with.
    floor: AtomicU64,
}

impl LocalFences {
    pub(crate) fn new() -> Self {
        let start = Clock::system().now_micros();
        Self { last: AtomicU64::new(start), floor: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> Fence {
        Fence::new(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// From now on gives and writes only with fences above `seen`.
    pub(crate) fn observe(&self, seen: Fence) {
        self.last.fetch_max(seen.get(), Ordering::Relaxed);
        self.floor.fetch_max(self.next().get(), Ordering::Relaxed);
    }

    /// The fence with which a turn writes.
    pub(crate) fn to_write(&self, turn: Fence) -> Fence {
        turn.max(Fence::new(self.floor.load(Ordering::Relaxed)))
    }
}
