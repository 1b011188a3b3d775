//! Finds the chats that somebody has to look after.

use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::Statement;

#[derive(Debug)]
pub(super) struct Statements {
    /// The present moment, if a lease has ended, where that has to be asked first: it is value 4 of
    /// the other. The values: two that are not used, the provider.
    pub(super) moment: Option<Statement>,
    /// The values: the lease, how many, the provider, the moment if it was asked. The answer: chats, the longest
    /// ended first, each perhaps several times.
    pub(super) take: Statement,
}

/// What another has locked it looks after, or renews itself: so nobody waits here.
const COMBINED: &str = "WITH ended AS (
        SELECT chat, ends_at FROM {p}inbox
        WHERE state = 1 AND provider = {3} AND ends_at <= {now} ORDER BY ends_at LIMIT {2}
        FOR UPDATE SKIP LOCKED
    ), waiting AS (
        SELECT chat, min(ends_at) AS since FROM ended GROUP BY chat
    ), renewed AS (
        UPDATE {p}inbox SET ends_at = {now} + {1} WHERE ctid = ANY (ARRAY(
            SELECT t.ctid FROM {p}inbox AS t
            WHERE t.state = 1 AND t.ends_at <= {now} AND t.chat IN (SELECT chat FROM waiting)
            FOR UPDATE OF t SKIP LOCKED))
    )
    SELECT chat FROM waiting ORDER BY since";

const MOMENT: &str = "SELECT {now} FROM {p}inbox
    WHERE state = 1 AND provider = {3} AND ends_at <= {now} LIMIT 1";

/// All statements mean the same moment, so that no lease is renewed of which nobody is told.
const ENDED: &str = "SELECT chat FROM {p}inbox
    WHERE state = 1 AND provider = {3} AND ends_at <= {4}
    ORDER BY ends_at, chat, position LIMIT {2}";

pub(super) fn statements(dialect: &Dialect, names: &TablePrefix) -> Statements {
    let render = |template: &str| dialect.statement(template, names);
    if dialect.combines {
        return Statements { moment: None, take: render(COMBINED) };
    }
    let steps = if dialect.returning {
        let renew = format!(
            "UPDATE {{p}}inbox SET ends_at = {{now}} + {{1}}
            WHERE state = 1 AND ends_at <= {{4}} AND chat IN ({ENDED})"
        );
        vec![render(ENDED), render(&renew)]
    } else {
        // What was read is locked, so the same is found again.
        let renew = format!(
            "UPDATE {{p}}inbox AS t JOIN (SELECT DISTINCT chat FROM ({ENDED}) AS ended) AS waiting
                ON t.chat = waiting.chat
            SET t.ends_at = {{now}} + {{1}} WHERE t.state = 1 AND t.ends_at <= {{4}}"
        );
        vec![render(&format!("{ENDED} FOR UPDATE")), render(&renew)]
    };
    Statements { moment: Some(render(MOMENT)), take: Statement::in_turn(steps) }
}
