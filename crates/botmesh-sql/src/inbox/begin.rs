//! Begins the first pending record of a chat. The values: chat, fence, lease. The answer, if there
//! is one: whether it was begun, the fence that forbids it, in which time it is due, and the record.
//!
//! The record may end or be postponed by somebody whose turn is over, between being found the first
//! and being begun. Then it is neither begun nor refused nor to be waited for, and the caller asks
//! again.
//!
//! PostgreSQL does not wait for its disk here. A server that crashes may so forget that a record was
//! begun, and with it all that came later, for what it writes it writes in order: an end, a note of
//! sends or a checkpoint that was confirmed has brought the beginning to the disk with it. What it
//! forgets is an attempt, of which there is one more then; and a fence, which forbade those whose
//! turn was over to end the record. Their turns are forgotten by such a server too, nothing is
//! granted until the leases of before have ended, and a checkpoint is still compared by its revision.

use std::time::Duration;

use botmesh_core::Fence;
use botmesh_core::id::Position;
use botmesh_core::store::{Begun, InboxRecord};

use crate::DriverError;
use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::value::Row;
use crate::write::{Tells, Update};

/// The setting holds until the end of the statement's own transaction.
const COMBINED: &str = "WITH first AS (
        SELECT position, fence, due_at, set_config('synchronous_commit', 'off', true) FROM (
            SELECT position, fence, due_at FROM {p}inbox
            WHERE chat = {1} AND state = 1 ORDER BY position LIMIT 1
        ) AS pending
    ), begun AS (
        UPDATE {p}inbox AS t
        SET fence = {2}, attempts = t.attempts + 1, ends_at = {now} + {3} FROM first
        WHERE t.chat = {1} AND t.position = first.position AND t.state = 1
            AND (t.fence IS NULL OR t.fence <= {2}) AND t.due_at <= {now}
        RETURNING t.position, t.attempts, t.body, t.sends, t.error
    )
    SELECT CASE WHEN begun.position IS NULL THEN 0 ELSE 1 END,
        CASE WHEN first.fence > {2} THEN first.fence END, first.due_at - {now}, first.position,
        attempts, body, sends, error,
        CASE WHEN EXISTS (SELECT 1 FROM {p}inbox AS later WHERE later.chat = {1}
            AND later.state = 1 AND later.position > first.position) THEN 1 ELSE 0 END
    FROM first LEFT JOIN begun ON 1 = 1";

const BEGIN: Update<'_> = Update {
    table: "inbox",
    change: &[("fence", "{2}"), ("attempts", "{t}attempts + 1"), ("ends_at", "{now} + {3}")],
    only_if: "chat = {1} AND state = 1 AND (fence IS NULL OR fence <= {2}) AND due_at <= {now}
        AND position = (SELECT position FROM (SELECT position FROM {p}inbox
            WHERE chat = {1} AND state = 1 ORDER BY position LIMIT 1) AS first)",
    tells: Tells::Number("position"),
};

/// Where others write at the same time, a record may become pending before the one that was begun.
const TELL: &str = "SELECT {changed}, CASE WHEN fence > {2} THEN fence END, due_at - {now},
        position, attempts, CASE WHEN {changed} > 0 THEN body END, sends, error,
        CASE WHEN EXISTS (SELECT 1 FROM {p}inbox AS later WHERE later.chat = {1}
            AND later.state = 1 AND later.position > t.position) THEN 1 ELSE 0 END
    FROM {p}inbox AS t WHERE chat = {1} AND state = 1 AND {begun} ORDER BY position LIMIT 1";

pub(super) fn statement(dialect: &Dialect, names: &TablePrefix) -> Statement {
    if dialect.combines {
        return dialect.statement(COMBINED, names);
    }
    let begin =
        Update { tells: if dialect.returning { Tells::Nothing } else { BEGIN.tells }, ..BEGIN };
    Statement::in_turn(vec![begin.statement(dialect, names), dialect.statement(TELL, names)])
}

/// What an answer says, a null for nothing included; none when it is to be asked again.
pub(super) fn begun(mut row: Row) -> Result<Option<Begun>, DriverError> {
    let Some(is_begun) = row.optional_integer()? else { return Ok(Some(Begun::Nothing)) };
    let is_begun = is_begun > 0;
    let higher = row.optional_integer()?.and_then(|fence| u64::try_from(fence).ok());
    let due_in = row.integer()?;
    if !is_begun {
        let due_in = u64::try_from(due_in).unwrap_or(0);
        return Ok(match (higher, due_in) {
            (Some(higher), _) => Some(Begun::Refused(Fence::new(higher))),
            (None, 0) => None,
            (None, _) => Some(Begun::NotYet(Duration::from_micros(due_in))),
        });
    }
    Ok(Some(Begun::Record(InboxRecord {
        position: Position::new(row.number()?),
        attempts: super::attempts(row.integer()?),
        body: row.optional_text()?.unwrap_or_default(),
        sends: row.optional_text()?,
        error: row.optional_text()?,
        has_more: row.integer()? > 0,
    })))
}
