use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::dice::Dice;
use crate::watched::Watched;

/// The places at which a process can die: before and after each call that changes what its store
/// has of chats. Clones are the same places.
///
/// ```
/// use std::sync::Arc;
///
/// use botmesh_core::MemoryStore;
/// use botmesh_core::testing::{CrashPoints, CrashingStore};
///
/// let points = CrashPoints::at(3);
/// let store = CrashingStore::new(Arc::new(MemoryStore::new()), points.clone());
/// // Run a bot on `store`, and drop it when `points.crashed()` is over.
/// # drop((store, points));
/// ```
#[derive(Debug, Clone)]
pub struct CrashPoints(Arc<Points>);

#[derive(Debug)]
struct Points {
    at: usize,
    passed: AtomicUsize,
    crashed: Watched<bool>,
    /// Of a thousand calls, how many fail, and what says which.
    failures: Mutex<(u64, Dice)>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    /// It does not reach the store.
    Lost,
    /// It is executed, and its answer is lost.
    Unanswered,
}

impl CrashPoints {
    /// The process dies at the point with this number, from 0. Then no call ever returns.
    #[must_use]
    pub fn at(number: usize) -> Self {
        let (passed, crashed) = (AtomicUsize::new(0), Watched::new(false));
        let failures = Mutex::new((0, Dice::new(0, 0)));
        Self(Arc::new(Points { at: number, passed, crashed, failures }))
    }

    /// The process does not die.
    #[must_use]
    pub fn never() -> Self {
        Self::at(usize::MAX)
    }

    /// From now on so many of a thousand calls fail, as those of a server that is away: half of
    /// them are executed all the same. The seed says which.
    pub fn fail(&self, per_mille: u64, seed: u64) {
        *self.0.failures.lock() = (per_mille, Dice::new(seed, 0));
    }

    /// How many points were passed or died at.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.0.passed.load(Ordering::Acquire)
    }

    /// Waits until the process has died. Safe to cancel.
    pub async fn crashed(&self) {
        self.0.crashed.watch().wait_for(|crashed| *crashed).await;
    }

    pub(crate) async fn pass(&self) {
        if self.0.passed.fetch_add(1, Ordering::AcqRel) == self.0.at {
            self.0.crashed.replace(true);
        }
        self.live().await;
    }

    pub(super) fn fate(&self) -> Fate {
        let mut failures = self.0.failures.lock();
        let (per_mille, dice) = &mut *failures;
        match dice.below(1000) {
            cast if cast >= *per_mille => Fate::Answered,
            cast if cast % 2 == 0 => Fate::Lost,
            _ => Fate::Unanswered,
        }
    }

    /// Never returns when the process has died.
    pub(super) async fn live(&self) {
        if self.0.crashed.get() {
            std::future::pending::<()>().await;
        }
    }
}
