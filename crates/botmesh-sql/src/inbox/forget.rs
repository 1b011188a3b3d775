//! Removes what need not be kept any longer. Before a record goes, its position goes into the floor
//! that new positions start above.

use super::schema::{CLAIMED, DEAD, DONE};
use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;

/// The values of each: how long records are kept after their end, how many are removed at most. The
/// answer: how many were.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) done: Statement,
    pub(super) claims: Statement,
    pub(super) dead: Statement,
}

const COMBINED: &str = "WITH old AS (
        SELECT ctid AS place, position FROM {p}inbox
        WHERE {ended} ORDER BY ends_at LIMIT {2}
        FOR UPDATE SKIP LOCKED
    ), raised AS (
        UPDATE {p}meta SET value = (SELECT max(position) FROM old)
        WHERE name = 'floor' AND value < (SELECT max(position) FROM old)
    ), removed AS (
        DELETE FROM {p}inbox WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING 1
    )
    SELECT count(*) FROM removed";

const RAISE_FLOOR: &str = "UPDATE {p}meta SET value = {highest}
    WHERE name = 'floor' AND value < {highest}";

const HIGHEST: &str = "(SELECT MAX(position) FROM
    (SELECT position FROM {p}inbox WHERE {ended} ORDER BY ends_at LIMIT {2}) AS old)";

impl Statements {
    pub(super) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        let of_state = |state| {
            let ended = format!("state <> 1 AND state = {state} AND ends_at <= {{now}} - {{1}}");
            let render =
                |template: &str| dialect.statement(&template.replace("{ended}", &ended), names);
            if dialect.combines {
                return render(COMBINED);
            }
            let below = format!("{ended} AND position <= {{floor}}");
            Statement::in_turn(vec![
                render(&RAISE_FLOOR.replace("{highest}", HIGHEST)),
                render(&dialect.remove_some("{p}inbox", "chat, position", &below)),
                render("SELECT {changed}"),
            ])
        };
        Self { done: of_state(DONE), claims: of_state(CLAIMED), dead: of_state(DEAD) }
    }
}
