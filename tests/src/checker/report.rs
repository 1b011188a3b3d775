use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Violation;
use crate::driver::Verdict;
use crate::history::Nanos;

use crate::timeline::{End, Timeline};

/// What a run came to.
#[derive(Debug, Default)]
pub struct Report {
    /// Rules that were broken.
    pub violations: Vec<Violation>,
    /// Turns that were held.
    pub turns: usize,
    /// Leaderships that were held.
    pub leaderships: usize,
    /// Tickets that were given up or failed.
    pub unserved: usize,
    /// Grants and rights that were lost with their session.
    pub lost: usize,
    /// The processes there were.
    pub processes: usize,
    /// The faults, by kind.
    pub faults: BTreeMap<String, usize>,
    /// From asking to holding.
    pub waits: Percentiles,
    /// From the kill of a holder to the next grant to somebody who waited by then.
    pub fail_overs: Percentiles,
    /// The longest stall of a process outside of faults.
    pub longest_stall: Duration,
}

/// Some of many times.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    /// How many there are.
    pub count: usize,
    /// Half of them are shorter.
    pub p50: Duration,
    /// Ninety-nine in a hundred are shorter.
    pub p99: Duration,
    /// The longest.
    pub most: Duration,
}

impl Percentiles {
    fn of(mut times: Vec<Nanos>) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let index = times.len().saturating_sub(1) * share / 100;
            Duration::from_nanos(times.get(index).copied().unwrap_or(0))
        };
        Self { count: times.len(), p50: at(50), p99: at(99), most: at(100) }
    }
}

impl Report {
    pub(super) fn of(timeline: &Timeline, violations: Vec<Violation>) -> Self {
        let processes = timeline.processes.len();
        let mut report = Self { violations, processes, ..Self::default() };
        for fault in &timeline.faults {
            *report.faults.entry(fault.kind.clone()).or_default() += 1;
        }
        let (mut waits, mut fail_overs) = (Vec::new(), Vec::new());
        for key in timeline.keys.values() {
            let grants = Timeline::grants(key);
            for ticket in &key.tickets {
                report.unserved += usize::from(ticket.end != End::Open);
            }
            for (index, (ticket, grant)) in grants.iter().enumerate() {
                if !grant.held {
                    report.lost += 1;
                } else if ticket.reserved.is_some() {
                    report.turns += 1;
                    waits.push(grant.at - ticket.sent);
                } else {
                    report.leaderships += 1;
                }
                if let (None, Some(killed), Some((waiter, next))) =
                    (grant.ended, timeline.processes[ticket.process].killed, grants.get(index + 1))
                    && waiter.sent < killed
                    && next.at > killed
                {
                    fail_overs.push(next.at - killed);
                }
            }
        }
        report.waits = Percentiles::of(waits);
        report.fail_overs = Percentiles::of(fail_overs);
        let stopped = |(from, to): &&(Nanos, Nanos)| {
            timeline.faults.iter().any(|fault| fault.begin < *to && fault.end > *from)
        };
        let stalls = timeline.stalls.iter().filter(|stall| !stopped(stall));
        let stalls = stalls.map(|(from, to)| to - from);
        report.longest_stall = Duration::from_nanos(stalls.max().unwrap_or(0));
        report
    }

    /// How many faults there were.
    #[must_use]
    pub fn fault_count(&self) -> usize {
        self.faults.values().sum()
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, p50, p99, most } = self;
        write!(f, "{count} (p50 {p50:.1?}, p99 {p99:.1?}, longest {most:.1?})")
    }
}

impl Verdict for Report {
    fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "turns          {}", self.turns)?;
        writeln!(f, "leaderships    {}", self.leaderships)?;
        writeln!(f, "not served     {} (cancelled, dropped, failed)", self.unserved)?;
        writeln!(f, "seen too late  {}", self.lost)?;
        writeln!(f, "processes      {}", self.processes)?;
        writeln!(f, "waits          {}", self.waits)?;
        writeln!(f, "fail-overs     {}", self.fail_overs)?;
        writeln!(f, "longest stall  {:.1?}", self.longest_stall)?;
        writeln!(f, "faults         {}", self.fault_count())?;
        for (kind, count) in &self.faults {
            writeln!(f, "  {count:>5} {kind}")?;
        }
        writeln!(f, "violations     {}", self.violations.len())?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "  {violation}")?;
        }
        Ok(())
    }
}
