//! A grant tells truly who held the key before.

use super::Rule;
use super::exclusion::name;
use crate::history::Nanos;
use crate::timeline::{Grant, Ticket, Timeline};

/// For this long a backend remembers a key that nobody holds: half of what it promises by default.
const REMEMBERED: Nanos = 300_000_000_000;

pub(super) fn check(
    timeline: &Timeline,
    grants: &[(&Ticket, &Grant)],
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    for pair in grants.windows(2) {
        let ((before, known), (ticket, grant)) = (pair[0], pair[1]);
        // Leaderships do not tell.
        let (Some(holder), Some(_)) = (before.incarnation(), &ticket.reserved) else { continue };
        let wrong = match &grant.previous {
            None => grant.at.saturating_sub(known.at) < REMEMBERED,
            Some((fence, who)) if *fence == known.fence => who != holder,
            // In between somebody may have been granted who never noted it.
            Some((fence, _)) => *fence < known.fence || *fence >= grant.fence,
        };
        if wrong && !timeline.forgot(known.at, grant.at) {
            let seen = format!(
                "{} got {} after {:?}; but {holder} had {}",
                name(timeline, ticket),
                grant.fence,
                grant.previous,
                known.fence
            );
            accuse(Rule::WrongPrevious, grant.at, seen);
        }
    }
}
