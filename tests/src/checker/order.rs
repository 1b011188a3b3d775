//! Who asked first gets it first.

use super::Rule;
use super::exclusion::name;
use crate::history::Nanos;
use crate::timeline::{End, Grant, Key, Ticket, Timeline};

pub(super) fn check(
    timeline: &Timeline,
    key: &Key,
    grants: &[(&Ticket, &Grant)],
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    check_granted(timeline, grants, accuse);
    check_given_up(timeline, key, grants, accuse);
}

/// Fences tell the order of grants. Whoever was granted after somebody must not have been
/// acknowledged before that one asked.
fn check_granted(
    timeline: &Timeline,
    grants: &[(&Ticket, &Grant)],
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    let mut latest: Option<(&Ticket, &Grant)> = None;
    for (ticket, grant) in grants {
        let Some(reserved) = &ticket.reserved else { continue };
        if let Some((other, before)) = latest
            && other.sent > reserved.at
        {
            let seen = format!(
                "{} was acknowledged at {} and got {}; {} asked at {} and got {}",
                name(timeline, ticket),
                reserved.at,
                grant.fence,
                name(timeline, other),
                other.sent,
                before.fence
            );
            accuse(Rule::OutOfOrder, grant.at, seen);
        }
        if latest.is_none_or(|(other, _)| other.sent < ticket.sent) {
            latest = Some((ticket, grant));
        }
    }
}

/// A ticket that waits with a living session is not passed by, unless the backend forgot it.
fn check_given_up(
    timeline: &Timeline,
    key: &Key,
    grants: &[(&Ticket, &Grant)],
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    let mut by_time: Vec<_> =
        grants.iter().filter(|(ticket, _)| ticket.reserved.is_some()).copied().collect();
    by_time.sort_by_key(|(_, grant)| grant.at);
    // Of all that were granted until then, the one that had asked last.
    let mut latest: Vec<&Ticket> = Vec::with_capacity(by_time.len());
    for (ticket, _) in &by_time {
        let before = latest.last().filter(|before| before.sent >= ticket.sent);
        latest.push(before.copied().unwrap_or(ticket));
    }
    for ticket in &key.tickets {
        let (Some(reserved), End::GaveUp { at, alive: true, .. }) = (&ticket.reserved, &ticket.end)
        else {
            continue;
        };
        let granted = by_time.partition_point(|(_, grant)| grant.at < *at);
        if let Some(other) = granted.checked_sub(1).map(|last| latest[last])
            && other.sent > reserved.at
            && !timeline.forgot(reserved.at, *at)
        {
            let seen = format!(
                "{} waited from {} to {at}; {} asked at {} and was granted meanwhile",
                name(timeline, ticket),
                reserved.at,
                name(timeline, other),
                other.sent
            );
            accuse(Rule::Overtaken, *at, seen);
        }
    }
}
