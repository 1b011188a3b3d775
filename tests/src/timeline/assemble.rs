use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};

use super::{End, Fault, Grant, Process, Reserved, Ticket, Timeline};
use crate::history::{Call, Entry, Event, Nanos};

/// Puts histories together: that of the driver, and those of the workers by their number.
///
/// # Errors
/// When an event names a ticket or a history that there is not.
pub fn assemble(driver: &[Entry], workers: &[Vec<Entry>]) -> Result<Timeline> {
    let mut timeline = Timeline::default();
    for (number, entries) in workers.iter().enumerate() {
        read_worker(&mut timeline, number, entries)
            .with_context(|| format!("the history of worker {number} is broken"))?;
    }
    read_driver(&mut timeline, driver)?;
    for key in timeline.keys.values_mut() {
        key.marks.sort_unstable();
    }
    timeline.stalls.sort_unstable();
    Ok(timeline)
}

fn read_driver(timeline: &mut Timeline, entries: &[Entry]) -> Result<()> {
    let mut open: HashMap<u64, usize> = HashMap::new();
    for Entry { at, event } in entries {
        match event {
            Event::Fault { number, kind, forgets } => {
                open.insert(*number, timeline.faults.len());
                let (kind, begin, end) = (kind.clone(), *at, Nanos::MAX);
                timeline.faults.push(Fault { kind, begin, end, forgets: *forgets });
            }
            Event::Healed { number } => {
                let index = open.remove(number).context("a fault healed that had not begun")?;
                timeline.faults[index].end = *at;
            }
            Event::Killed { history } => {
                let process = timeline.processes.get_mut(usize::try_from(*history)?);
                process.context("a process was killed that has no history")?.killed = Some(*at);
            }
            Event::Stalled { length } => {
                timeline.stalls.push((at.saturating_sub(*length), *at));
            }
            other => bail!("the driver cannot say {other:?}"),
        }
    }
    Ok(())
}

fn read_worker(timeline: &mut Timeline, number: usize, entries: &[Entry]) -> Result<()> {
    let mut process = Process::default();
    // Where each ticket is: its key, and its place there.
    let mut places: HashMap<Call, (String, usize)> = HashMap::new();
    for Entry { at, event } in entries {
        process.last = process.last.max(*at);
        let (call, change) = match event {
            Event::Started { replica, lease } => {
                process.replica.clone_from(replica);
                process.lease = lease * 1_000_000;
                continue;
            }
            Event::Stalled { length } => {
                timeline.stalls.push((at.saturating_sub(*length), *at));
                continue;
            }
            Event::Finished => {
                process.finished = true;
                continue;
            }
            Event::Reserve { call, key: name } => {
                let key = timeline.keys.entry(name.clone()).or_default();
                places.insert(*call, (name.clone(), key.tickets.len()));
                key.marks.push(*at);
                let (reserved, wait, grants) = (None, None, Vec::new());
                let (process, call, sent, end) = (number, *call, *at, End::Open);
                key.tickets.push(Ticket { process, call, sent, reserved, wait, grants, end });
                continue;
            }
            event => (call_of(event).context("a worker cannot say this")?, event),
        };
        let (name, place) = places.get(&call).context("a ticket was never asked for")?;
        let key = timeline.keys.get_mut(name).context("a key was never named")?;
        key.marks.push(*at);
        apply(&mut key.tickets[*place], *at, change)?;
    }
    timeline.processes.push(process);
    Ok(())
}

const fn call_of(event: &Event) -> Option<Call> {
    match event {
        Event::Reserved { call, .. }
        | Event::Failed { call, .. }
        | Event::Wait { call }
        | Event::Granted { call, .. }
        | Event::Effect { call, .. }
        | Event::Lost { call }
        | Event::Release { call, .. }
        | Event::Released { call }
        | Event::GaveUp { call, .. } => Some(*call),
        _ => None,
    }
}

fn apply(ticket: &mut Ticket, at: Nanos, event: &Event) -> Result<()> {
    let granted = |ticket: &mut Ticket, change: &dyn Fn(&mut Grant)| {
        ticket.grants.last_mut().map(change).context("nothing was granted")
    };
    match event {
        Event::Reserved { sequence, incarnation, .. } => {
            let incarnation = incarnation.clone();
            ticket.reserved = Some(Reserved { at, sequence: *sequence, incarnation });
        }
        Event::Failed { .. } => ticket.end = End::Failed(at),
        Event::Wait { .. } => ticket.wait = Some(at),
        Event::Granted { fence, held, previous, .. } => {
            let (fence, held, previous) = (*fence, *held, previous.clone());
            let (checked, entitled, ended) = (at, at, None);
            ticket.grants.push(Grant { at, fence, held, previous, checked, entitled, ended });
        }
        Event::Effect { remaining, .. } => granted(ticket, &|grant| {
            grant.checked = grant.checked.max(at);
            grant.entitled = grant.entitled.max(at + remaining);
        })?,
        Event::Lost { .. } => granted(ticket, &|grant| grant.ended = Some(at))?,
        Event::Release { checked, .. } => granted(ticket, &|grant| {
            grant.checked = grant.checked.max(*checked);
            grant.ended = Some(at);
        })?,
        Event::GaveUp { alive, timed_out, .. } => {
            ticket.end = End::GaveUp { at, alive: *alive, timed_out: *timed_out };
        }
        _ => {}
    }
    Ok(())
}
