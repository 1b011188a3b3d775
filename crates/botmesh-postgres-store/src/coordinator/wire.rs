//! Operations, replies and wake-ups in the form that the functions read and write.

use std::time::Duration;

use botmesh_core::coordination::transition::{Limits, Operation, Reply, TicketId, Wakeup};
use botmesh_core::coordination::{CoordinationKey, Grant, PreviousHolder};
use botmesh_core::id::{Fence, IncarnationId};
use botmesh_sql::{DriverError, Fault, Row, Statement, Value};

use super::schema::Statements;

/// The call that executes an operation, with its values. `channel` is where the wake-ups of a
/// session that is registered go.
pub(super) fn encode<'a>(
    operation: &Operation,
    limits: &Limits,
    channel: &str,
    statements: &'a Statements,
) -> Option<(&'a Statement, Vec<Value>)> {
    let grace = micros(limits.grace);
    let ask = |how, key: &CoordinationKey, ticket: &TicketId, epoch: u32| {
        let values = vec![
            Value::Integer(how),
            key.as_str().into(),
            ticket.incarnation.as_str().into(),
            number(ticket.sequence),
            Value::Integer(epoch.into()),
            Value::Integer(limits.max_queue.into()),
            micros(limits.held),
            grace.clone(),
        ];
        (&statements.ask, values)
    };
    let held = |key: &CoordinationKey, ticket: &TicketId| {
        vec![key.as_str().into(), ticket.incarnation.as_str().into(), number(ticket.sequence)]
    };
    let call = match operation {
        Operation::Register { incarnation, lease } => {
            let name = incarnation.as_str().into();
            (&statements.register, vec![name, micros(*lease), channel.into(), grace])
        }
        Operation::Heartbeat { incarnation, epoch, age } => {
            let (name, epoch) = (incarnation.as_str().into(), Value::Integer((*epoch).into()));
            (&statements.heartbeat, vec![name, epoch, micros(*age), grace])
        }
        Operation::Stop { incarnation } => {
            (&statements.stop, vec![incarnation.as_str().into(), grace])
        }
        Operation::Reserve { key, ticket, epoch } => ask(1, key, ticket, *epoch),
        Operation::Attempt { key, ticket, epoch } => ask(2, key, ticket, *epoch),
        Operation::Poll { key, ticket } => ask(3, key, ticket, 0),
        Operation::Release { key, ticket } => {
            let mut values = held(key, ticket);
            values.extend([micros(limits.idle), micros(limits.held), grace]);
            (&statements.release, values)
        }
        Operation::Touch { key, ticket } => {
            let mut values = held(key, ticket);
            values.extend([micros(limits.held), grace]);
            (&statements.touch, values)
        }
        _ => return None,
    };
    Some(call)
}

fn micros(time: Duration) -> Value {
    Value::Integer(microseconds(time))
}

/// Small enough that adding it to a moment does not overflow.
pub(super) fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

fn number(number: u64) -> Value {
    Value::Integer(signed(number))
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads what a function answered.
pub(super) fn decode(rows: Vec<Row>) -> Result<Reply, DriverError> {
    decode_row(rows.into_iter().next().ok_or_else(|| unexpected("there is no answer"))?)
}

/// Reads one row of what a function answered.
pub(super) fn decode_row(mut row: Row) -> Result<Reply, DriverError> {
    let reply = match row.integer()? {
        1 => Reply::Registered { shortest: time(row.number()?), longest: time(row.number()?) },
        2 => Reply::Duplicate,
        3 => Reply::Renewed,
        4 => Reply::Jumped,
        5 => Reply::Expired,
        6 => Reply::Stopped,
        7 => {
            let (fence, previous_fence) = (row.number()?, row.optional_integer()?);
            row.optional_integer()?;
            Reply::Granted(grant(fence, previous_fence, row.optional_text()?)?)
        }
        8 => Reply::Queued { ahead: count(row.number()?)?, remaining: time(row.number()?) },
        9 => Reply::Busy { remaining: time(row.number()?) },
        10 => Reply::Full { waiting: count(row.number()?)? },
        11 => Reply::Superseded,
        12 => Reply::NoSession,
        13 => Reply::Stale,
        14 => match row.optional_integer()? {
            None => Reply::Released { next: None },
            Some(sequence) => {
                let sequence =
                    u64::try_from(sequence).map_err(|error| unexpected(error.to_string()))?;
                let (fence, previous_fence) = (row.number()?, row.optional_integer()?);
                let grant = grant(fence, previous_fence, row.optional_text()?)?;
                Reply::Released { next: Some((sequence, grant)) }
            }
        },
        15 => Reply::Cancelled,
        16 => Reply::NotHolder,
        17 => Reply::Touched,
        other => return Err(unexpected(format!("{other} means nothing"))),
    };
    Ok(reply)
}

pub(super) fn unexpected(detail: impl Into<String>) -> DriverError {
    let detail = detail.into();
    DriverError::new(Fault::Corrupt, format!("the answer of a coordination function: {detail}"))
}

fn count(number: u64) -> Result<u32, DriverError> {
    u32::try_from(number).map_err(|error| unexpected(error.to_string()))
}

const fn time(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(super) fn grant(
    fence: u64,
    previous_fence: Option<i64>,
    previous: Option<String>,
) -> Result<Grant, DriverError> {
    let fence = Fence::new(fence);
    let (Some(previous), Some(previous_fence)) = (previous, previous_fence) else {
        return Ok(Grant { fence, previous: None });
    };
    let incarnation =
        IncarnationId::new(previous).map_err(|error| unexpected(error.to_string()))?;
    let previous_fence =
        u64::try_from(previous_fence).map_err(|error| unexpected(error.to_string()))?;
    let previous = Some(PreviousHolder { incarnation, fence: Fence::new(previous_fence) });
    Ok(Grant { fence, previous })
}

/// Reads a wake-up of `incarnation`; none when it is not one.
pub(super) fn read_wakeup(payload: &str, incarnation: &IncarnationId) -> Option<Wakeup> {
    let mut parts = payload.split('|');
    let sequence = parts.next()?.parse().ok()?;
    let fence = parts.next()?.parse().ok()?;
    let previous_fence: i64 = parts.next()?.parse().ok()?;
    let key = CoordinationKey::decode(&from_hexadecimal(parts.next()?)?).ok()?;
    let previous = from_hexadecimal(parts.next()?)?;
    let previous = (!previous.is_empty()).then_some(previous);
    let grant = grant(fence, Some(previous_fence), previous).ok()?;
    let ticket = TicketId { incarnation: incarnation.clone(), sequence };
    parts.next().is_none().then_some(Wakeup { ticket, key, grant })
}

fn from_hexadecimal(text: &str) -> Option<String> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let (pairs, []) = pairs.as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low));
    String::from_utf8(bytes.collect::<Result<_, _>>().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wake_up_is_read_as_the_function_writes_it(
            name in "[^\0]{1,20}", previous in "[^\0]{0,20}", sequence in any::<u64>(),
        ) {
            let key = CoordinationKey::from(botmesh_core::LeaderName::new(name).unwrap());
            let own = IncarnationId::new("a#1").unwrap();
            let hexadecimal = |text: &str| -> String {
                text.bytes().map(|byte| format!("{byte:02x}")).collect()
            };
            let (name, holder) = (hexadecimal(key.as_str()), hexadecimal(&previous));
            let payload = format!("{sequence}|17|3|{name}|{holder}");
            let wakeup = read_wakeup(&payload, &own).unwrap();
            prop_assert_eq!(wakeup.key, key);
            prop_assert_eq!(wakeup.ticket, TicketId { incarnation: own, sequence });
            prop_assert_eq!(wakeup.grant.fence, Fence::new(17));
            let found = wakeup.grant.previous.map(|found| found.incarnation.as_str().to_owned());
            prop_assert_eq!(found.unwrap_or_default(), previous);
        }

        #[test]
        fn strange_messages_are_no_wake_ups(payload in ".{0,60}") {
            let own = IncarnationId::new("a#1").unwrap();
            let _ = read_wakeup(&payload, &own);
        }
    }
}
