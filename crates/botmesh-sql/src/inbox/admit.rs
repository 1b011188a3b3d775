//! Takes messages in. The values of both statements: chat, message or an empty text, body, lease,
//! how many may be pending, state, provider. The answer: whether it was admitted, whether it is known, its
//! position, and how many records of the chat were pending before.

use botmesh_core::id::Position;
use botmesh_core::store::Admission;

use super::schema::GATES;
use crate::DriverError;
use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::value::Row;

/// In MySQL, lets one after the other admit to a chat.
const PASS_GATE: &str = "SELECT number INTO @botmesh_gate FROM {p}inbox_gates
    WHERE number = MOD(CRC32({1}), {gates}) FOR UPDATE";

/// A claim that has ended does not count, and its id goes to the message that comes now.
const FREE: &str = "UPDATE {p}inbox SET message = NULL, state = 2, ends_at = {long ago}
    WHERE chat = {1} AND message = {2} AND state = 0 AND ends_at <= {now}";

const INSERT: &str =
    "INSERT INTO {p}inbox (chat, position, provider, message, state, attempts, body,
        due_at, ends_at)
    SELECT {1}, {greatest}({now}, 1 + floor, 1 + last), {7}, NULLIF({2}, ''), {6}, 0, {3},
        {now}, {now} + {4}
    FROM (SELECT {floor} AS floor,
        COALESCE((SELECT MAX(position) FROM {p}inbox WHERE chat = {1}), 0) AS last,
        (SELECT COUNT(*) FROM {p}inbox WHERE chat = {1} AND state = 1) AS waiting,
        (SELECT COUNT(*) FROM {p}inbox WHERE chat = {1} AND message = {2}) AS known) AS found
    WHERE waiting < {5} AND known = 0";

pub(super) const TELL: &str = "SELECT {changed},
    (SELECT COUNT(*) FROM {p}inbox WHERE chat = {1} AND message = {2}),
    COALESCE((SELECT MAX(position) FROM {p}inbox WHERE chat = {1}), 0),
    (SELECT COUNT(*) FROM {p}inbox WHERE chat = {1} AND state = 1) - {changed} * {6}";

pub(super) fn statement(dialect: &Dialect, names: &TablePrefix) -> Statement {
    let render = |template: &str| dialect.statement(template, names);
    if dialect.combines {
        return render(
            "SELECT admitted, known, place, waiting
            FROM {p}inbox_admit({1}, NULLIF({2}, ''), {3}, {4}, {5}, {6}, {7})",
        );
    }
    let free = FREE.replace("{long ago}", super::schema::LONG_AGO);
    let mut steps = vec![render(&free), render(INSERT), render(TELL)];
    if !dialect.returning {
        steps.insert(0, render(&PASS_GATE.replace("{gates}", &GATES.to_string())));
    }
    Statement::in_turn(steps)
}

pub(super) fn admission(row: &mut Row) -> Result<Admission, DriverError> {
    let is_admitted = row.integer()? > 0;
    let is_known = row.integer()? > 0;
    let position = row.number()?;
    let waiting = row.number()?;
    Ok(if is_admitted {
        Admission::New { position: Position::new(position), is_behind: waiting > 0 }
    } else if is_known {
        Admission::Known
    } else {
        Admission::Full { waiting: usize::try_from(waiting).unwrap_or(usize::MAX) }
    })
}
