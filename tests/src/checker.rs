//! What a timeline must not show.
//!
//! Each rule is sound: it accuses only when no order of the true moments, of which a history knows
//! an earlier and a later one, would be allowed. It sorts, then looks at each event once.

mod exclusion;
mod liveness;
mod order;
mod previous;
mod report;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use crate::history::Nanos;
use crate::timeline::Timeline;

pub use report::{Percentiles, Report};

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Two held one key at the same time.
    Overlap,
    /// A grant had no higher fence than one before it.
    FenceNotRaised,
    /// One ticket was granted twice.
    GrantedTwice,
    /// A ticket was granted before one that had been acknowledged before it was asked for.
    OutOfOrder,
    /// A ticket was granted while one waited that had been acknowledged before it was asked for.
    Overtaken,
    /// A grant named a wrong holder before it, or none.
    WrongPrevious,
    /// An incarnation acted after it had been declared dead.
    ActedWhenDead,
    /// A key was taken from a killed holder before its lease ended.
    TakenTooEarly,
    /// Nothing happened to a key that somebody waited for.
    Stuck,
    /// A process or a wait never ended.
    NeverEnded,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// The key, where it is about one.
    pub key: String,
    /// When it showed.
    pub at: Nanos,
    /// What was seen.
    pub seen: String,
}

/// What counts as stuck.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The longest lease.
    pub lease: Duration,
    /// What a machine needs besides: timers, scheduling that was too short to be measured.
    pub slack: Duration,
    /// How long the servers may grant nothing after a fault.
    pub grace: Duration,
    /// No fault excuses a longer standstill.
    pub standstill: Duration,
}

impl Bounds {
    /// The bounds for replicas whose longest lease is this.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self::with_grace(lease, lease)
    }

    /// The bounds where nothing is granted for longer than a lease after a fault.
    #[must_use]
    pub fn with_grace(lease: Duration, grace: Duration) -> Self {
        // A waiter that was not renewed lately asks again after a third of its lease.
        let slack = lease / 3 + Duration::from_millis(250);
        Self { lease, slack, grace, standstill: lease * 5 + grace + Duration::from_secs(4) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} at {}: {}", self.rule, self.key, self.at, self.seen)
    }
}

/// Checks every rule.
#[must_use]
pub fn check(timeline: &Timeline, bounds: &Bounds) -> Report {
    let mut violations = Vec::new();
    for (name, key) in &timeline.keys {
        let grants = Timeline::grants(key);
        let mut accuse = |rule, at, seen| {
            violations.push(Violation { rule, key: name.clone(), at, seen });
        };
        exclusion::check(timeline, &grants, &mut accuse);
        order::check(timeline, key, &grants, &mut accuse);
        previous::check(timeline, &grants, &mut accuse);
        liveness::check(timeline, key, bounds, &mut accuse);
    }
    exclusion::check_the_dead(timeline, &mut violations);
    liveness::check_ends(timeline, &mut violations);
    violations.sort_by_key(|violation| violation.at);
    Report::of(timeline, violations)
}
