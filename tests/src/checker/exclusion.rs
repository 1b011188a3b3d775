//! At most one holder, rising fences, nothing after death.

use std::collections::{HashMap, HashSet};

use super::{Rule, Violation};
use crate::history::Nanos;
use crate::timeline::{Grant, Ticket, Timeline};

/// A holder that was killed within this time of its last check had not stalled, and so had not
/// lost its session before.
const BRISK: Nanos = 200_000_000;

pub(super) fn check(
    timeline: &Timeline,
    grants: &[(&Ticket, &Grant)],
    accuse: &mut impl FnMut(Rule, Nanos, String),
) {
    let mut longest: Option<(&Ticket, &Grant)> = None;
    let mut entitled: Option<(&Ticket, &Grant, Nanos)> = None;
    let mut tickets = HashSet::new();
    for (index, (ticket, grant)) in grants.iter().enumerate() {
        if !tickets.insert((ticket.process, ticket.call)) {
            let seen = format!("{} again with fence {}", name(timeline, ticket), grant.fence);
            accuse(Rule::GrantedTwice, grant.at, seen);
        }
        if index > 0 && grants[index - 1].1.fence == grant.fence {
            let other = name(timeline, grants[index - 1].0);
            let seen = format!("{other} and {} have {}", name(timeline, ticket), grant.fence);
            accuse(Rule::FenceNotRaised, grant.at, seen);
        }
        if !grant.held {
            continue;
        }
        if let Some((other, before)) = longest
            && grant.at < before.checked
        {
            let rule =
                if grant.checked >= before.at { Rule::Overlap } else { Rule::FenceNotRaised };
            let seen = format!(
                "{} held {} from {} to {}, {} held {} from {} to {}",
                name(timeline, other),
                before.fence,
                before.at,
                before.checked,
                name(timeline, ticket),
                grant.fence,
                grant.at,
                grant.checked
            );
            accuse(rule, grant.at, seen);
        }
        if let Some((other, before, until)) = entitled
            && grant.at < until
        {
            let seen = format!(
                "{} held {} and was killed, with a lease until {until}; {} got it before",
                name(timeline, other),
                before.fence,
                name(timeline, ticket)
            );
            accuse(Rule::TakenTooEarly, grant.at, seen);
        }
        if longest.is_none_or(|(_, before)| before.checked < grant.checked) {
            longest = Some((ticket, grant));
        }
        if let (None, Some(killed)) = (grant.ended, timeline.processes[ticket.process].killed)
            && killed < grant.checked + BRISK
            && entitled.is_none_or(|(.., until)| until < grant.entitled)
        {
            entitled = Some((ticket, grant, grant.entitled));
        }
    }
}

/// An incarnation from which somebody took a key that it had not given up is dead; nothing of it
/// may be allowed to act later, on whatever key.
pub(super) fn check_the_dead(timeline: &Timeline, violations: &mut Vec<Violation>) {
    let mut dead: HashMap<&str, Nanos> = HashMap::new();
    let mut acted: Vec<(&str, &str, &Grant)> = Vec::new();
    for (name, key) in &timeline.keys {
        let grants = Timeline::grants(key);
        for (index, (ticket, grant)) in grants.iter().enumerate() {
            let Some(own) = ticket.incarnation() else { continue };
            if grant.held {
                acted.push((own, name, grant));
            }
            let Some(taker) = grants.get(index + 1).filter(|taker| taker.1.held) else { continue };
            let taken = taker.1.previous.as_ref();
            if taken.is_some_and(|(fence, who)| *fence == grant.fence && who == own)
                && taker.0.incarnation() != Some(own)
                && grant.ended.is_none_or(|ended| ended > taker.1.at)
            {
                let at = dead.entry(own).or_insert(taker.1.at);
                *at = taker.1.at.min(*at);
            }
        }
    }
    for (own, key, grant) in acted {
        if let Some(died) = dead.get(own)
            && grant.checked > *died
        {
            let seen =
                format!("{own} acted with {} after it was taken for dead at {died}", grant.fence);
            let (rule, at) = (Rule::ActedWhenDead, grant.checked);
            violations.push(Violation { rule, key: key.to_owned(), at, seen });
        }
    }
}

pub(super) fn name(timeline: &Timeline, ticket: &Ticket) -> String {
    let replica = &timeline.processes[ticket.process].replica;
    let sequence = ticket.reserved.as_ref().map_or(0, |reserved| reserved.sequence);
    let whose = ticket.incarnation().unwrap_or(replica);
    format!("ticket {sequence} of {whose} (history {}, call {})", ticket.process, ticket.call)
}
