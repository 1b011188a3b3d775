//! Moments and the clock that tells them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment as milliseconds since 1970-01-01 UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Takes milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `later` after this one; the last one that can be written when that is beyond.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(later.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to this moment; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(0).plus(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

/// Tells the wall clock's time: the machine's, or one that follows tokio's (virtual) clock.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Virtual>>);

struct Virtual {
    origin: Timestamp,
    started: tokio::time::Instant,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(None)
    }

    /// A clock that shows `origin` now and advances with tokio's clock, which tests can pause.
    #[must_use]
    pub fn following_tokio(origin: Timestamp) -> Self {
        Self(Some(Arc::new(Virtual { origin, started: tokio::time::Instant::now() })))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            None => SystemTime::now().into(),
            Some(clock) => clock.origin.plus(clock.started.elapsed()),
        }
    }

    /// The present moment in microseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_micros(&self) -> u64 {
        let since = match &self.0 {
            None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Some(clock) => {
                Duration::from_millis(clock.origin.as_millis()) + clock.started.elapsed()
            }
        };
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(virtual)" } else { "Clock(system)" })
    }
}
