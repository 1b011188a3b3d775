use std::time::Duration;

use tokio::time::Instant;

use super::Nanos;

/// The clock of a history.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// `CLOCK_BOOTTIME`, which all processes of a machine share, and which runs on while a process
    /// is stopped.
    Machine,
    /// Tokio's, for simulated runs.
    Virtual(Instant),
}

impl Clock {
    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Nanos {
        match self {
            Self::Machine => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
            }
            Self::Virtual(origin) => nanos(origin.elapsed()),
        }
    }
}

/// A time in nanoseconds.
#[must_use]
pub fn nanos(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
