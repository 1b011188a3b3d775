//! Rows as values, and values as rows.

use std::time::Duration;

use botmesh_core::coordination::stored::{Revised, Snapshot, Write};
use botmesh_core::coordination::transition::{
    Limits, ServerTime, Session, StoredSession, StoredSpace, StoredTurn, TicketId,
};
use botmesh_core::coordination::{CoordinationKey, Grant, PreviousHolder};
use botmesh_core::id::{Fence, IncarnationId};
use botmesh_sql::{DriverError, Fault, Row, Value};

/// The state that `Statements::read` gave.
pub(super) fn snapshot(rows: Vec<Row>) -> Result<Snapshot, DriverError> {
    let mut snapshot = Snapshot {
        now: ServerTime::default(),
        server: String::new(),
        space: Revised::default(),
        turn: Revised::default(),
    };
    let mut sessions = Vec::new();
    for mut row in rows {
        match row.integer()? {
            0 => {
                snapshot.now = moment(&mut row)?;
                snapshot.space = space(&mut row, &mut snapshot.server)?;
            }
            1 => snapshot.turn = turn(&mut row)?,
            _ => sessions.push(session(&mut row)?),
        }
    }
    snapshot.space.state.sessions = sessions;
    // As the table itself has them, so that two states can be compared.
    let order =
        |one: &StoredSession, other: &StoredSession| one.incarnation.cmp(&other.incarnation);
    snapshot.space.state.sessions.sort_by(order);
    Ok(snapshot)
}

/// Ends the sessions that were opened at another run of the server. It may have lost the last things
/// that it confirmed: a turn that somebody holds, whose session it would go on to renew, or that
/// somebody gave one back. So whoever had a session gets another one, and loses what it held. Its
/// lease is remembered under a name that nobody has, for grace lasts as long as the longest.
pub(super) fn end_sessions_of_another_run(snapshot: &mut Snapshot) {
    let space = &mut snapshot.space.state;
    if space.server.as_ref().is_none_or(|known| *known == snapshot.server) {
        return;
    }
    for stored in &mut space.sessions {
        let ended = format!("{ENDED}{}", stored.session.lease.as_micros());
        if let Ok(ended) = IncarnationId::new(ended) {
            stored.incarnation = ended;
        }
    }
    // Those of one length are one.
    space.sessions.sort_by(|one, other| one.incarnation.cmp(&other.incarnation));
    space.sessions.dedup_by(|one, other| one.incarnation == other.incarnation);
}

/// What begins the name of a lease whose session was ended. No incarnation begins so.
const ENDED: &str = "#ended ";

fn space(row: &mut Row, server: &mut String) -> Result<Revised<StoredSpace>, DriverError> {
    let revision = row.optional_integer()?;
    let numbers = [(); 4].map(|()| row.optional_integer());
    *server = row.text()?;
    let known = row.optional_text()?;
    let Some(revision) = revision else { return Ok(Revised::default()) };
    let [floor, grace_until, server_since, jumped_at] = numbers;
    let state = StoredSpace {
        floor: natural(floor?)?,
        grace_until: ServerTime::from_micros(natural(grace_until?)?),
        server: known,
        server_since: server_since?
            .map(|since| natural(Some(since)).map(ServerTime::from_micros))
            .transpose()?,
        jumped_at: ServerTime::from_micros(natural(jumped_at?)?),
        sessions: Vec::new(),
    };
    Ok(Revised { revision: natural(Some(revision))?, state })
}

fn turn(row: &mut Row) -> Result<Revised<StoredTurn>, DriverError> {
    let (revision, fence) = (row.number()?, row.number()?);
    let (ticket, previous_fence) = (row.optional_integer()?, row.optional_integer()?);
    let expires_at = moment(row)?;
    row.optional_integer()?;
    let (holder, before) = (row.optional_text()?, row.optional_text()?);
    let queue = match row.optional_text()? {
        None => Vec::new(),
        Some(queue) => serde_json::from_str(&queue).map_err(|error| corrupt(error.to_string()))?,
    };
    let holder = match holder {
        None => None,
        Some(name) => {
            Some(TicketId { incarnation: incarnation(name)?, sequence: natural(ticket)? })
        }
    };
    let previous = previous(before, previous_fence)?;
    Ok(Revised { revision, state: StoredTurn { holder, fence, previous, queue, expires_at } })
}

pub(super) fn session(row: &mut Row) -> Result<StoredSession, DriverError> {
    let (expires_at, lease) = (moment(row)?, Duration::from_micros(row.number()?));
    let (registered_at, epoch) = (moment(row)?, row.number()?);
    let epoch = u32::try_from(epoch).map_err(|error| corrupt(error.to_string()))?;
    row.optional_integer()?;
    row.optional_integer()?;
    let session = Session { expires_at, lease, registered_at, epoch };
    Ok(StoredSession { incarnation: incarnation(row.text()?)?, session })
}

/// A grant as `Statements::taken` gives it.
pub(super) fn grant(mut row: Row) -> Result<Grant, DriverError> {
    let fence = Fence::new(row.number()?);
    let previous_fence = row.optional_integer()?;
    Ok(Grant { fence, previous: previous(row.optional_text()?, previous_fence)? })
}

fn previous(
    name: Option<String>,
    fence: Option<i64>,
) -> Result<Option<PreviousHolder>, DriverError> {
    let Some(name) = name else { return Ok(None) };
    let fence = Fence::new(natural(fence)?);
    Ok(Some(PreviousHolder { incarnation: incarnation(name)?, fence }))
}

/// The values of `Statements::create_space` and `replace_space`.
pub(super) fn space_values(write: &Write<'_, StoredSpace>) -> Vec<Value> {
    let space = write.state;
    let server = space.server.as_deref().map_or(Value::Null, Value::from);
    let since = space.server_since.map_or(Value::Null, time);
    vec![
        number(write.next),
        number(space.floor),
        time(space.grace_until),
        server,
        since,
        time(space.jumped_at),
        number(write.expected),
    ]
}

/// The values of `Statements::sessions`.
pub(super) fn session_values(sessions: &[StoredSession]) -> Vec<Value> {
    let values = sessions.iter().flat_map(|StoredSession { incarnation, session }| {
        [
            incarnation.as_str().into(),
            time(session.expires_at),
            micros(session.lease),
            time(session.registered_at),
            Value::Integer(session.epoch.into()),
        ]
    });
    values.collect()
}

/// The values of the writes of a turn.
pub(super) fn turn_values(
    key: &CoordinationKey,
    write: &Write<'_, StoredTurn>,
) -> Result<Vec<Value>, serde_json::Error> {
    let turn = write.state;
    let (holder, ticket) = match &turn.holder {
        Some(holder) => (holder.incarnation.as_str().into(), number(holder.sequence)),
        None => (Value::Null, Value::Null),
    };
    let (previous, previous_fence) = match &turn.previous {
        Some(previous) => (previous.incarnation.as_str().into(), number(previous.fence.get())),
        None => (Value::Null, Value::Null),
    };
    let queue = match turn.queue.is_empty() {
        true => Value::Null,
        false => Value::Text(serde_json::to_string(&turn.queue)?),
    };
    Ok(vec![
        key.as_str().into(),
        number(write.next),
        holder,
        ticket,
        number(turn.fence),
        previous,
        previous_fence,
        queue,
        time(turn.expires_at),
        number(write.expected),
    ])
}

/// The values of `Statements::take`, of which the first three are those of `taken`.
pub(super) fn take_values(
    key: &CoordinationKey,
    ticket: &TicketId,
    epoch: u32,
    limits: &Limits,
) -> Vec<Value> {
    let mut values = ticket_values(key, ticket);
    values.extend([micros(limits.held), Value::Integer(epoch.into())]);
    values
}

/// The values of `Statements::give_back`.
pub(super) fn give_back_values(
    key: &CoordinationKey,
    ticket: &TicketId,
    limits: &Limits,
) -> Vec<Value> {
    let mut values = ticket_values(key, ticket);
    values.push(micros(limits.idle));
    values
}

fn ticket_values(key: &CoordinationKey, ticket: &TicketId) -> Vec<Value> {
    vec![key.as_str().into(), ticket.incarnation.as_str().into(), number(ticket.sequence)]
}

fn micros(time: Duration) -> Value {
    Value::Integer(i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4))
}

fn time(moment: ServerTime) -> Value {
    number(moment.as_micros())
}

fn number(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn moment(row: &mut Row) -> Result<ServerTime, DriverError> {
    row.number().map(ServerTime::from_micros)
}

fn natural(number: Option<i64>) -> Result<u64, DriverError> {
    let number = number.ok_or_else(|| corrupt("a number is missing"))?;
    u64::try_from(number).map_err(|error| corrupt(error.to_string()))
}

fn incarnation(name: String) -> Result<IncarnationId, DriverError> {
    IncarnationId::new(name).map_err(|error| corrupt(error.to_string()))
}

fn corrupt(detail: impl Into<String>) -> DriverError {
    let detail = detail.into();
    DriverError::new(Fault::Corrupt, format!("a row of the coordination: {detail}"))
}
