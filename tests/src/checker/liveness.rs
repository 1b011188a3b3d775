//! Who waits gets on.
//!
//! A holder notes often that it holds, so a key to which nothing happens while somebody waits is
//! held by nobody who lives. That may last a lease, and longer only while a fault or the grace after it
//! lasts or the machine stalls, which are measured.

use super::exclusion::name;
use super::{Bounds, Rule, Violation};
use crate::history::{Nanos, nanos};
use crate::timeline::{End, Key, Ticket, Timeline};

pub(super) fn check(
    timeline: &Timeline,
    key: &Key,
    bounds: &Bounds,
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    let bound = nanos(bounds.lease + bounds.slack);
    for gap in key.marks.windows(2).map(|pair| (pair[0], pair[1])) {
        if gap.1 - gap.0 <= bound {
            continue;
        }
        let waiting = key.tickets.iter().filter_map(|ticket| {
            let from = ticket.wait?.max(gap.0);
            let to = ticket.wait_end(&timeline.processes).unwrap_or(gap.1).min(gap.1);
            (to > from + bound).then_some((ticket, from, to))
        });
        let Some((ticket, from, to)) = waiting.max_by_key(|(_, from, to)| to - from) else {
            continue;
        };
        check_gap(timeline, ticket, (from, to), bounds, accuse);
    }
}

fn check_gap(
    timeline: &Timeline,
    ticket: &Ticket,
    gap: (Nanos, Nanos),
    bounds: &Bounds,
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    let bound = nanos(bounds.lease + bounds.slack);
    let clear = clear_stretch(timeline, gap, nanos(bounds.grace));
    let idle = stalled(timeline, clear);
    if clear.1 - clear.0 > bound + idle {
        let seen = format!(
            "{} waited {} ms without a fault and nothing happened, {} ms of them stalled",
            name(timeline, ticket),
            (clear.1 - clear.0) / 1_000_000,
            idle / 1_000_000
        );
        accuse(Rule::Stuck, clear.1, seen);
    } else if gap.1 - gap.0 > nanos(bounds.standstill) + stalled(timeline, gap) {
        let seen = format!(
            "{} waited {} ms and nothing happened",
            name(timeline, ticket),
            (gap.1 - gap.0) / 1_000_000
        );
        accuse(Rule::Stuck, gap.1, seen);
    }
}

/// The longest part of a gap that is outside of all faults and the settling after them.
fn clear_stretch(timeline: &Timeline, gap: (Nanos, Nanos), settle: Nanos) -> (Nanos, Nanos) {
    let mut faults: Vec<_> = timeline
        .faults
        .iter()
        .map(|fault| (fault.begin, fault.end.saturating_add(settle)))
        .filter(|(begin, end)| *begin < gap.1 && *end > gap.0)
        .collect();
    faults.sort_unstable();
    let (mut from, mut best) = (gap.0, (gap.0, gap.0));
    for (begin, end) in faults.into_iter().chain([(gap.1, gap.1)]) {
        if begin > from && begin - from > best.1 - best.0 {
            best = (from, begin);
        }
        from = from.max(end);
    }
    best
}

/// The time within a stretch during which some process did not run.
fn stalled(timeline: &Timeline, stretch: (Nanos, Nanos)) -> Nanos {
    let (mut sum, mut until) = (0, stretch.0);
    for (from, to) in &timeline.stalls {
        let (from, to) = ((*from).max(until), (*to).min(stretch.1));
        if to > from {
            sum += to - from;
            until = to;
        }
    }
    sum
}

/// Every process and every wait came to an end, unless it was killed.
pub(super) fn check_ends(timeline: &Timeline, violations: &mut Vec<Violation>) {
    let mut accuse = |key: &str, at, seen| {
        violations.push(Violation { rule: Rule::NeverEnded, key: key.to_owned(), at, seen });
    };
    for (number, process) in timeline.processes.iter().enumerate() {
        if process.killed.is_none() && !process.finished {
            let seen = format!("{} (history {number}) did not end", process.replica);
            accuse("-", process.last, seen);
        }
    }
    for (key, tickets) in &timeline.keys {
        for ticket in &tickets.tickets {
            let process = &timeline.processes[ticket.process];
            if process.killed.is_none() && ticket.grants.is_empty() && ticket.end == End::Open {
                accuse(key, process.last, format!("{} waits for ever", name(timeline, ticket)));
            }
        }
    }
}
