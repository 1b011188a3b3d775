//! The server's clock inside of pipelines.

use std::time::Duration;

use botmesh_core::coordination::transition::ServerTime;
use mongodb::bson::{Bson, DateTime, bson};

use super::wire::long;
use crate::expression::millis;

/// Whose time counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Clock {
    /// The server's.
    #[default]
    Server,
    /// The one that a test tells.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests tell the time"))]
    Told(ServerTime),
}

impl Clock {
    /// Now, in microseconds.
    pub(super) fn now(self) -> Bson {
        match self {
            // The server's clock has whole milliseconds.
            Self::Server => crate::expression::fresh(),
            Self::Told(now) => Bson::Int64(long(now.as_micros())),
        }
    }

    /// The moment after this time, in microseconds.
    pub(super) fn after(self, time: Duration) -> Bson {
        let time = long(u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 4));
        match self {
            Self::Server => bson!({ "$add": [self.now(), time] }),
            Self::Told(now) => Bson::Int64(long(now.as_micros()).saturating_add(time)),
        }
    }

    /// The same moment in the server's own kind of time.
    pub(super) fn date_after(self, time: Duration) -> Bson {
        match self {
            Self::Server => bson!({ "$add": ["$$NOW", millis(time)] }),
            Self::Told(now) => {
                let now = long(now.as_micros()) / 1_000;
                DateTime::from_millis(now.saturating_add(millis(time))).into()
            }
        }
    }

    /// What a server that was asked for `$$NOW` tells.
    pub(super) fn read(self, now: DateTime) -> ServerTime {
        match self {
            Self::Server => ServerTime::from_micros(now.timestamp_millis().unsigned_abs() * 1_000),
            Self::Told(now) => now,
        }
    }
}
