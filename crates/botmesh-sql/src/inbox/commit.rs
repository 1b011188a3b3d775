//! Ends records, alone or together with a change of the checkpoint.
//!
//! Together it goes so: the record is locked if it may be ended, then the checkpoint is changed if
//! there is such a record, then the record is ended if the checkpoint was changed. As it is locked,
//! nothing can come between.

use crate::checkpoint;
use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::write::{Tells, Update, Upsert};

#[derive(Debug)]
pub(super) struct Statements {
    /// The values: chat, position, fence.
    pub(super) end: Statement,
    /// The values: as for a checkpoint that is made, position.
    pub(super) create: Statement,
    /// The values: as for a checkpoint that is replaced, position.
    pub(super) replace: Statement,
    /// The values: as for a checkpoint that is cleared, position.
    pub(super) clear: Statement,
}

const END: Update<'_> = Update {
    table: "inbox",
    change: &[
        ("ends_at", "CASE WHEN {t}message IS NULL THEN -3000000000000000000 ELSE {now} END"),
        ("body", "NULL"),
        ("sends", "NULL"),
        ("error", "NULL"),
        ("state", "2"),
    ],
    only_if: "chat = {1} AND position = {2} AND state IN (0, 1)
        AND (fence IS NULL OR fence <= {3})",
    tells: Tells::Number("position"),
};

/// In MySQL, tells the number of the checkpoint that was written.
const TELL_WRITTEN: &str = "SELECT CAST(LAST_INSERT_ID() AS SIGNED) FROM {p}meta
    WHERE name = 'floor' AND LAST_INSERT_ID() > 0";

impl Statements {
    pub(super) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        let together = |position: u8, write: &dyn Fn(&str) -> Statement| {
            Together { dialect, names, position }.statement(write)
        };
        let end = END.statement(dialect, names);
        let existing = |condition: &str, source: &str| {
            format!("{condition} AND EXISTS (SELECT 1 FROM {source})")
        };
        Self {
            end,
            create: together(6, &|source| {
                Upsert { from: Some(source), ..checkpoint::CREATE }.statement(dialect, names)
            }),
            replace: together(7, &|source| {
                let only_if = existing(checkpoint::REPLACE.only_if, source);
                Update { only_if: &only_if, ..checkpoint::REPLACE }.statement(dialect, names)
            }),
            clear: together(4, &|source| {
                let only_if = existing(checkpoint::CLEAR_IF.only_if, source);
                Update { only_if: &only_if, ..checkpoint::CLEAR_IF }.statement(dialect, names)
            }),
        }
    }
}

/// The end of a record together with a write of its chat's checkpoint. The fence is value 2.
struct Together<'a> {
    dialect: &'a Dialect,
    names: &'a TablePrefix,
    /// The number of the value, which is the last one.
    position: u8,
}

impl Together<'_> {
    /// `write` gets the record that may be ended, as something to select from.
    fn statement(&self, write: &dyn Fn(&str) -> Statement) -> Statement {
        let render = |template: &str| self.dialect.statement(template, self.names);
        let place = format!("chat = {{1}} AND position = {{{}}}", self.position);
        let open = format!("{place} AND state IN (0, 1) AND (fence IS NULL OR fence <= {{2}})");
        let record = format!("SELECT position AS place FROM {{p}}inbox WHERE {open}");
        let end = |from: &str, only_if: &str| {
            let only_if = format!("{place}{only_if}");
            let end = Update { only_if: &only_if, tells: Tells::Nothing, ..END };
            end.statement_from(self.dialect, self.names, from)
        };
        if self.dialect.combines {
            return Statement::numbered(format!(
                "WITH opened AS ({} FOR UPDATE), written AS ({}), ended AS ({}) SELECT revision FROM written",
                render(&record).text(),
                write("opened WHERE 1 = 1").text(),
                end(" FROM written", "").text(),
            ));
        }
        let written = write(&format!("({record}) AS opened WHERE 1 = 1"));
        let ended = end("", " AND {applied}");
        if self.dialect.returning {
            return Statement::in_turn(vec![written, ended]);
        }
        let locked =
            record.replace("SELECT position AS place", "SELECT position INTO @botmesh_open");
        Statement::in_turn(vec![
            render("SET @botmesh_written = LAST_INSERT_ID(0)"),
            render(&format!("{locked} FOR UPDATE")),
            written,
            ended,
            render(TELL_WRITTEN),
        ])
    }
}
