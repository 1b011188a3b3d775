//! Operations, replies and wake-ups in the form that the scripts read and write.

use std::time::Duration;

use botmesh_core::coordination::transition::{Limits, Operation, Reply, TicketId, Wakeup};
use botmesh_core::coordination::{CoordinationKey, Grant, PreviousHolder};
use botmesh_core::id::{Fence, IncarnationId};
use botmesh_core::store::StoreError;
use redis::Value;

use super::scripts::Scripts;
use crate::error::corrupt;
use crate::keys::{Keyspace, Layout};
use crate::reply;
use crate::script::Script;
use crate::words::Words;

/// Enough for most calls.
const ARGUMENTS: usize = 12;
const BYTES: usize = 256;

const REPLY: &str = "an answer of a coordination script";

/// One script call, but for the run of the server and, for sessions, the bucket.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) script: &'static Script,
    /// None for operations on sessions: these are for each bucket.
    pub(super) keys: Option<[String; 3]>,
    pub(super) arguments: Words,
}

/// The call that executes an operation.
pub(super) fn encode(
    operation: &Operation,
    space: &Keyspace,
    limits: &Limits,
    scripts: &'static Scripts,
) -> Option<Call> {
    let begin = |incarnation: &IncarnationId| {
        let mut arguments = Words::with_capacity(ARGUMENTS, BYTES);
        arguments.push_display(limits.grace.as_micros());
        arguments.push(incarnation.as_str());
        arguments
    };
    let session = |script, incarnation: &IncarnationId, times: &[u128]| {
        let mut arguments = begin(incarnation);
        times.iter().for_each(|time| arguments.push_display(time));
        Some(Call { script, keys: None, arguments })
    };
    let turn = |key: &CoordinationKey, ticket: &TicketId| {
        let mut arguments = begin(&ticket.incarnation);
        arguments.push_display(format_args!("{}/{}", ticket.sequence, ticket.incarnation.as_str()));
        arguments.push_display(millis(limits.held));
        arguments.push(key.as_str());
        arguments.push(&space.channels_of(key));
        arguments.push(match space.layout() {
            Layout::Single => "PUBLISH",
            Layout::Cluster => "SPUBLISH",
        });
        (Some(space.turn(key)), arguments)
    };
    let ask = |key, ticket, how, epoch: u32| {
        let (keys, mut arguments) = turn(key, ticket);
        arguments.push(how);
        arguments.push_display(epoch);
        arguments.push_display(limits.max_queue);
        Some(Call { script: &scripts.ask, keys, arguments })
    };
    match operation {
        Operation::Register { incarnation, lease } => {
            session(&scripts.register, incarnation, &[lease.as_micros()])
        }
        Operation::Heartbeat { incarnation, epoch, age } => {
            session(&scripts.heartbeat, incarnation, &[u128::from(*epoch), age.as_micros()])
        }
        Operation::Stop { incarnation } => session(&scripts.stop, incarnation, &[]),
        Operation::Reserve { key, ticket, epoch } => ask(key, ticket, "R", *epoch),
        Operation::Attempt { key, ticket, epoch } => ask(key, ticket, "A", *epoch),
        Operation::Poll { key, ticket } => ask(key, ticket, "P", 0),
        Operation::Release { key, ticket } => {
            let (keys, mut arguments) = turn(key, ticket);
            arguments.push_display(millis(limits.idle));
            Some(Call { script: &scripts.release, keys, arguments })
        }
        Operation::Touch { key, ticket } => {
            let (keys, arguments) = turn(key, ticket);
            Some(Call { script: &scripts.touch, keys, arguments })
        }
        _ => None,
    }
}

fn millis(time: Duration) -> u128 {
    time.as_millis().max(1)
}

/// Reads what a script answered.
pub(super) fn decode(value: Value) -> Result<Reply, StoreError> {
    let Value::Array(parts) = value else { return Err(corrupt(REPLY, "it is no list")) };
    let mut parts = parts.into_iter();
    let mut next = || parts.next().ok_or_else(|| corrupt(REPLY, "a part is missing"));
    let reply = match reply::number(next()?, REPLY)? {
        1 => {
            let (shortest, longest) = (reply::time(next()?, REPLY)?, reply::time(next()?, REPLY)?);
            Reply::Registered { shortest, longest }
        }
        2 => Reply::Duplicate,
        3 => Reply::Renewed,
        4 => Reply::Jumped,
        5 => Reply::Expired,
        6 => Reply::Stopped,
        7 => Reply::Granted(read_grant([next()?, next()?, next()?])?),
        8 => Reply::Queued { ahead: count(next()?)?, remaining: reply::time(next()?, REPLY)? },
        9 => Reply::Busy { remaining: reply::time(next()?, REPLY)? },
        10 => Reply::Full { waiting: count(next()?)? },
        11 => Reply::Superseded,
        12 => Reply::NoSession,
        13 => Reply::Stale,
        14 => match next() {
            Err(_) => Reply::Released { next: None },
            Ok(sequence) => {
                let grant = read_grant([next()?, next()?, next()?])?;
                Reply::Released { next: Some((reply::number(sequence, REPLY)?, grant)) }
            }
        },
        15 => Reply::Cancelled,
        16 => Reply::NotHolder,
        17 => Reply::Touched,
        other => return Err(corrupt(REPLY, format!("{other} means nothing"))),
    };
    Ok(reply)
}

fn count(value: Value) -> Result<u32, StoreError> {
    let number = reply::number(value, REPLY)?;
    u32::try_from(number).map_err(|error| corrupt(REPLY, error.to_string()))
}

fn read_grant([fence, previous_fence, previous]: [Value; 3]) -> Result<Grant, StoreError> {
    let fence = Fence::new(reply::number(fence, REPLY)?);
    let previous = reply::text(previous, REPLY)?;
    if previous.is_empty() {
        return Ok(Grant { fence, previous: None });
    }
    let previous_fence = Fence::new(reply::number(previous_fence, REPLY)?);
    grant(fence, previous_fence, &previous)
}

fn grant(fence: Fence, previous_fence: Fence, previous: &str) -> Result<Grant, StoreError> {
    let incarnation =
        IncarnationId::new(previous).map_err(|error| corrupt(REPLY, error.to_string()))?;
    let previous = Some(PreviousHolder { incarnation, fence: previous_fence });
    Ok(Grant { fence, previous })
}

/// Reads a wake-up of `incarnation`; none when it is not one.
pub(super) fn read_wakeup(payload: &[u8], incarnation: &IncarnationId) -> Option<Wakeup> {
    let (head, previous) = std::str::from_utf8(payload).ok()?.rsplit_once('\0')?;
    let mut parts = head.splitn(4, '|');
    let mut next = || parts.next();
    let sequence = next()?.parse().ok()?;
    let fence = Fence::new(next()?.parse().ok()?);
    let previous_fence = next()?;
    let key = CoordinationKey::decode(next()?).ok()?;
    let grant = match previous.is_empty() {
        true => Grant { fence, previous: None },
        false => grant(fence, Fence::new(previous_fence.parse().ok()?), previous).ok()?,
    };
    let ticket = TicketId { incarnation: incarnation.clone(), sequence };
    Some(Wakeup { ticket, key, grant })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wake_up_is_read_as_the_script_writes_it(
            name in "[^\0]{1,20}", previous in "[^\0]{0,20}", sequence in any::<u64>(),
        ) {
            let key = CoordinationKey::from(botmesh_core::LeaderName::new(name).unwrap());
            let own = IncarnationId::new("a#1").unwrap();
            let payload = format!("{sequence}|17|{}|{key}\0{previous}", 3);
            let wakeup = read_wakeup(payload.as_bytes(), &own).unwrap();
            prop_assert_eq!(wakeup.key, key);
            prop_assert_eq!(wakeup.ticket, TicketId { incarnation: own, sequence });
            prop_assert_eq!(wakeup.grant.fence, Fence::new(17));
            let found = wakeup.grant.previous.map(|found| found.incarnation.as_str().to_owned());
            prop_assert_eq!(found.unwrap_or_default(), previous);
        }

        #[test]
        fn strange_messages_are_no_wake_ups(payload in prop::collection::vec(any::<u8>(), 0..60)) {
            let own = IncarnationId::new("a#1").unwrap();
            let _ = read_wakeup(&payload, &own);
        }
    }
}
