use std::time::Duration;

use tokio::time::Instant;

/// Tells how much time has passed for a lease. It never goes backwards and no wall clock is read.
///
/// On Linux the machine's clock is `CLOCK_BOOTTIME`, which runs on while the machine is suspended:
/// a laptop or virtual machine that wakes up an hour later finds its leases gone, as the backend
/// does. Elsewhere it is the monotonic clock of the standard library.
#[derive(Debug, Clone, Copy)]
pub struct LeaseClock(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    #[cfg(target_os = "linux")]
    Boot,
    #[cfg(not(target_os = "linux"))]
    Monotonic(std::time::Instant),
    Tokio(Instant),
}

/// A moment of a [`LeaseClock`], comparable with moments of the same clock only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseMoment(u64);

/// Moments begin here, so that the small numbers below are free to mean something else.
const ORIGIN: u64 = 1_000_000;

impl LeaseClock {
    /// The machine's clock, running during suspend where the system has such a clock.
    #[must_use]
    pub fn machine() -> Self {
        #[cfg(target_os = "linux")]
        return Self(Source::Boot);
        #[cfg(not(target_os = "linux"))]
        return Self(Source::Monotonic(std::time::Instant::now()));
    }

    /// Tokio's clock, which tests can pause.
    #[must_use]
    pub fn tokio() -> Self {
        Self(Source::Tokio(Instant::now()))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> LeaseMoment {
        let micros = match self.0 {
            #[cfg(target_os = "linux")]
            Source::Boot => {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000
            }
            #[cfg(not(target_os = "linux"))]
            Source::Monotonic(origin) => micros(origin.elapsed()),
            Source::Tokio(origin) => micros(origin.elapsed()),
        };
        LeaseMoment(ORIGIN + micros)
    }
}

impl LeaseMoment {
    /// The moment `later` after this one.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(micros(later)))
    }

    /// The time from `earlier` to this moment; zero when `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(super) const fn from_bits(bits: u64) -> Option<Self> {
        if bits < ORIGIN { None } else { Some(Self(bits)) }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_clock_advances() {
        let clock = LeaseClock::machine();
        let before = clock.now();
        while clock.now() == before {
            std::hint::spin_loop();
        }
        assert!(clock.now() > before);
    }

    #[tokio::test(start_paused = true)]
    async fn tokios_clock_is_virtual() {
        let clock = LeaseClock::tokio();
        let before = clock.now();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now().since(before), Duration::from_secs(3600));
        assert_eq!(before.since(clock.now()), Duration::ZERO);
    }
}
