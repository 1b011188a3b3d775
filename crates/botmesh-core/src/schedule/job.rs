use std::time::Duration;

use crate::id::{ChatKey, IdError, ProviderId};

/// What is to be done at the moments of a schedule: a name, and what happens when it is missed,
/// fails or takes too long.
///
/// ```
/// use std::time::Duration;
/// use botmesh_core::schedule::{Misfire, Retry, durable};
/// let job = durable("report")
///     .misfire(Misfire::CatchUp { most: 24 })
///     .retry(Retry::new(5).first(Duration::from_secs(10)))
///     .timeout(Duration::from_secs(120));
/// ```
#[derive(Debug, Clone)]
pub struct Job {
    pub(crate) name: String,
    pub(crate) durable: bool,
    pub(crate) misfire: Misfire,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) beside: Option<String>,
}

/// A job whose occurrences are run once each across all replicas and restarts. The name is its
/// identity in the store: it must stay the same.
#[must_use]
pub fn durable(name: impl Into<String>) -> Job {
    let (name, retry) = (name.into(), Retry::default());
    let misfire = Misfire::default();
    Job { name, durable: true, misfire, retry, timeout: None, beside: None }
}

/// A job that runs on every replica, and of which nothing is remembered. The name is for logs.
#[must_use]
pub fn plain(name: impl Into<String>) -> Job {
    let (name, retry) = (name.into(), Retry::new(1));
    Job { name, durable: false, misfire: Misfire::Skip, retry, timeout: None, beside: None }
}

impl Job {
    /// What is done about occurrences that were missed. Default: the latest is run.
    #[must_use]
    pub const fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// What is done about an occurrence that failed. Default of durable jobs: three attempts; plain
    /// ones are not repeated.
    #[must_use]
    pub const fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// How long one attempt may take before it is cancelled and counts as failed; without it, for
    /// ever.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs it on the replica that is connected to this provider, so that it can send over a
    /// platform that allows one session only. Without it, it runs on any replica. Plain jobs run
    /// everywhere all the same.
    #[must_use]
    pub fn beside(mut self, provider: impl Into<String>) -> Self {
        self.beside = Some(provider.into());
        self
    }

    /// Where its record is kept, among the checkpoints.
    pub(crate) fn key(&self) -> Result<ChatKey, IdError> {
        ChatKey::new(&ProviderId::new(RECORDS)?, &self.name)
    }
}

/// The place of the records among the checkpoints; no provider may have this id.
pub(crate) const RECORDS: &str = "botmesh.job";

/// What is done about occurrences that came due while nobody ran them: all replicas were down, the
/// one before took longer than a period, or a clock was set forward. One that is late by less than
/// a minute, or by half of a shorter period, is run as if it were not.
///
/// A job never overlaps with itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfire {
    /// None of them is run.
    Skip,
    /// The latest of them is run, once.
    #[default]
    Once,
    /// They are run one after the other, the oldest first.
    CatchUp {
        /// How many at most: the latest ones.
        most: u32,
    },
}

/// How often an occurrence is attempted, and how long is waited before another attempt: `first`
/// after the first failure, twice as long after each further one, `longest` at most. An attempt
/// counts when it begins, so one that kills its process counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub(crate) attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self::new(3)
    }
}

impl Retry {
    /// So many attempts in all; 1 s to 5 minutes between them.
    #[must_use]
    pub const fn new(attempts: u32) -> Self {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(300));
        Self { attempts, first, longest }
    }

    /// The pause after the first failure.
    #[must_use]
    pub const fn first(mut self, pause: Duration) -> Self {
        self.first = pause;
        self
    }

    /// The longest pause.
    #[must_use]
    pub const fn longest(mut self, pause: Duration) -> Self {
        self.longest = pause;
        self
    }

    /// The pause after this many failures.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.longest)
    }
}
