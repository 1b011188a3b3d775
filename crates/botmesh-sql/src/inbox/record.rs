//! What befalls a single record beside being begun and ended, and the dead letters.

use std::time::Duration;

use botmesh_core::id::Position;
use botmesh_core::store::DeadLetter;

use crate::DriverError;
use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::value::Row;
use crate::write::{Tells, Update};

#[derive(Debug)]
pub(super) struct Statements {
    /// The values: chat, position, fence, sends.
    pub(super) note_sends: Statement,
    /// The values: chat, position, fence, attempts, error, time until it is due, whether there is a
    /// note of sends, the note.
    pub(super) postpone: Statement,
    /// The values: chat, position, fence, error.
    pub(super) bury: Statement,
    /// The values: chat, position.
    pub(super) release: Statement,
    /// The values: chat, position.
    pub(super) revive: Statement,
    /// The values: the chat and the position of the one before, how many.
    pub(super) dead: Statement,
}

const NOTE_SENDS: Update<'_> = Update {
    table: "inbox",
    change: &[("sends", "{4}")],
    only_if: "chat = {1} AND position = {2} AND state = 1 AND (fence IS NULL OR fence <= {3})",
    tells: Tells::Number("position"),
};

const POSTPONE: Update<'_> = Update {
    change: &[
        ("attempts", "{4}"),
        ("error", "{5}"),
        ("due_at", "{now} + {6}"),
        ("ends_at", "{now} + {6}"),
        ("sends", "CASE WHEN {7} = 1 THEN {8} ELSE {t}sends END"),
    ],
    ..NOTE_SENDS
};

const BURY: Update<'_> =
    Update { change: &[("state", "3"), ("error", "{4}"), ("ends_at", "{now}")], ..NOTE_SENDS };

/// A claim is as good as gone without its message.
const RELEASE: Update<'_> = Update {
    change: &[
        ("ends_at", "CASE WHEN {t}state = 0 THEN -3000000000000000000 ELSE {now} END"),
        ("message", "CASE WHEN {t}state = 0 THEN NULL ELSE {t}message END"),
        ("state", "CASE WHEN {t}state = 0 THEN 2 ELSE {t}state END"),
    ],
    only_if: "chat = {1} AND position = {2} AND state IN (0, 1)",
    ..NOTE_SENDS
};

const REVIVE: Update<'_> = Update {
    change: &[("state", "1"), ("attempts", "0"), ("due_at", "{now}"), ("ends_at", "{now}")],
    only_if: "chat = {1} AND position = {2} AND state = 3",
    ..NOTE_SENDS
};

/// The comparison of the chat alone lets every backend use the index.
const DEAD: &str = "SELECT chat, position, body, attempts, error, {now} - ends_at FROM {p}inbox
    WHERE state = 3 AND chat >= {1} AND (chat > {1} OR position > {2})
    ORDER BY chat, position LIMIT {3}";

impl Statements {
    pub(super) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        Self {
            note_sends: NOTE_SENDS.statement(dialect, names),
            postpone: POSTPONE.statement(dialect, names),
            bury: BURY.statement(dialect, names),
            release: RELEASE.statement(dialect, names),
            revive: REVIVE.statement(dialect, names),
            dead: dialect.statement(DEAD, names),
        }
    }
}

/// Reads a dead letter; none when its chat has no valid key.
pub(super) fn dead_letter(row: &mut Row) -> Result<Option<DeadLetter>, DriverError> {
    let chat = row.text()?;
    let position = Position::new(row.number()?);
    let body = row.optional_text()?.unwrap_or_default();
    let attempts = super::attempts(row.integer()?);
    let error = row.optional_text()?.unwrap_or_default();
    let age = Duration::from_micros(u64::try_from(row.integer()?).unwrap_or(0));
    Ok(super::chat(&chat).map(|chat| DeadLetter { chat, position, body, attempts, error, age }))
}
