//! Writes that tell something of the row that they wrote. No row in their answer means that nothing
//! was written.
//!
//! PostgreSQL and SQLite have `RETURNING` for that. MySQL has not: there a number travels in
//! the answer to the statement itself, by `LAST_INSERT_ID(number)`
//! (<https://dev.mysql.com/doc/refman/8.0/en/information-functions.html#function_last-insert-id>),
//! and what is more is read in the same transaction.
//!
//! MySQL assigns from left to right, and an expression sees what was assigned before it. So
//! assignments stand in an order in which it does not matter whether an expression sees the old
//! value of another column or the new one.

use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::statement::{Answer, Rendering, Statement};

/// A column and the template of its value.
type Assignment = (&'static str, &'static str);

/// What a write tells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tells {
    Nothing,
    /// The number in this column, which is never zero.
    Number(&'static str),
    /// These expressions over the row as it is now.
    Row(&'static str),
}

/// Inserts a row, or changes the one that has the same key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upsert<'a> {
    pub(crate) table: &'static str,
    /// The columns of the key, which stand first in `insert`.
    pub(crate) key: &'static [&'static str],
    pub(crate) insert: &'static [Assignment],
    /// Inserts the row only if there is one in this, which has a condition at its end.
    pub(crate) from: Option<&'a str>,
    /// Changes a row that is there only if this holds.
    pub(crate) only_if: Option<&'static str>,
    pub(crate) change: &'static [Assignment],
    pub(crate) tells: Tells,
}

/// Changes a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update<'a> {
    pub(crate) table: &'static str,
    pub(crate) change: &'static [Assignment],
    /// Which one.
    pub(crate) only_if: &'a str,
    /// A number; that of a column which is not changed, too.
    pub(crate) tells: Tells,
}

impl Upsert<'_> {
    pub(crate) fn statement(&self, dialect: &Dialect, prefix: &TablePrefix) -> Statement {
        let mut to = Rendering::new(dialect, prefix);
        to.template("INSERT INTO {p}");
        to.template(self.table);
        if dialect.returning {
            to.template(" AS t");
        }
        to.template(" (");
        to.list(", ", self.insert, |to, (column, _)| to.template(column));
        to.template(if self.from.is_some() { ") SELECT " } else { ") VALUES (" });
        to.list(", ", self.insert, |to, (column, value)| {
            to.template(&self.tells.wrapped(to.dialect, column, value));
        });
        match self.from {
            Some(from) => to.pair(" FROM ", "", from),
            None => to.template(")"),
        }
        if dialect.returning { self.on_conflict(to) } else { self.on_duplicate_key(to, prefix) }
    }

    fn on_conflict(&self, mut to: Rendering<'_>) -> Statement {
        to.template(" ON CONFLICT (");
        to.list(", ", self.key, |to, column| to.template(column));
        to.template(")");
        if self.change.is_empty() {
            to.template(" DO NOTHING");
        } else {
            to.template(" DO UPDATE SET ");
            to.list(", ", self.change, |to, (column, value)| to.pair(column, " = ", value));
        }
        if let Some(only_if) = self.only_if {
            to.template(" WHERE ");
            to.template(only_if);
        }
        self.tells.write_returning(&mut to);
        to.finish()
    }

    fn on_duplicate_key(&self, mut to: Rendering<'_>, prefix: &TablePrefix) -> Statement {
        to.template(" ON DUPLICATE KEY UPDATE ");
        if let Some(only_if) = self.only_if {
            // Kept in the row meanwhile, for the condition may look different after the first
            // assignment.
            to.pair(DECIDED, " = ", only_if);
            to.template(", ");
        }
        to.list(", ", self.change, |to, (column, value)| {
            let number = self.tells.wrapped(to.dialect, column, value);
            let changed = match self.only_if {
                None => number,
                Some(_) if self.tells.is(column) => {
                    // A value of the row, so that nobody takes it for a constant.
                    let zero = format!("LAST_INSERT_ID({column} - {column})");
                    format!("IF({DECIDED}, {number}, {column} + {zero})")
                }
                Some(_) => format!("IF({DECIDED}, {number}, {column})"),
            };
            to.pair(column, " = ", &changed);
        });
        if self.only_if.is_some() {
            // A row that is as it was before need not reach the disk.
            to.pair(", ", DECIDED, " = NULL");
        }
        if self.change.is_empty() {
            // There is no other word for doing nothing that keeps quiet about nothing else.
            to.pair(self.key[0], " = ", self.key[0]);
        }
        let statement = to.finish();
        match self.tells {
            Tells::Nothing => statement,
            Tells::Number(_) => statement.answered_by(Answer::InsertId),
            Tells::Row(expressions) => {
                let dialect = &Dialect::MYSQL;
                let mut then = Rendering::new(dialect, prefix);
                then.pair("SELECT ", "", expressions);
                then.template(" FROM {p}");
                then.template(self.table);
                then.template(" WHERE ");
                let keys = self.insert.iter().take(self.key.len());
                then.list(" AND ", keys, |then, (column, value)| then.pair(column, " = ", value));
                Statement::in_turn(vec![statement, then.finish()])
            }
        }
    }
}

impl Update<'_> {
    pub(crate) fn statement(&self, dialect: &Dialect, prefix: &TablePrefix) -> Statement {
        self.statement_from(dialect, prefix, "")
    }

    /// The statement with a ` FROM` in it.
    pub(crate) fn statement_from(
        &self,
        dialect: &Dialect,
        prefix: &TablePrefix,
        from: &str,
    ) -> Statement {
        let mut to = Rendering::new(dialect, prefix);
        to.template("UPDATE {p}");
        to.template(self.table);
        to.template(if dialect.returning { " AS t SET " } else { " SET " });
        to.list(", ", self.change, |to, (column, value)| {
            let value = self.tells.wrapped(to.dialect, column, value);
            to.pair(column, " = ", &value);
        });
        if let Tells::Number(column) = self.tells
            && !dialect.returning
            && self.change.iter().all(|(changed, _)| *changed != column)
        {
            to.pair(", ", column, &format!(" = LAST_INSERT_ID({column})"));
        }
        to.template(from);
        to.template(" WHERE ");
        to.template(self.only_if);
        match self.tells {
            Tells::Number(_) if !dialect.returning => to.finish().answered_by(Answer::InsertId),
            tells => {
                tells.write_returning(&mut to);
                to.finish()
            }
        }
    }
}

impl Tells {
    fn is(self, column: &str) -> bool {
        matches!(self, Self::Number(number) if number == column)
    }

    /// The template of a column's value, which is told if it is the number.
    fn wrapped(self, dialect: &Dialect, column: &str, value: &str) -> String {
        if self.is(column) && !dialect.returning {
            format!("LAST_INSERT_ID({value})")
        } else {
            value.to_owned()
        }
    }

    fn write_returning(self, to: &mut Rendering<'_>) {
        let expressions = match self {
            Self::Nothing => return,
            Self::Number(column) => column,
            Self::Row(expressions) => expressions,
        };
        if to.dialect.returning {
            to.pair(" RETURNING ", "", expressions);
        }
    }
}

/// The column of MySQL's tables that holds, while an upsert is executed, whether its condition is met.
const DECIDED: &str = "decided";

#[cfg(test)]
mod tests {
    use super::*;

    const UPSERT: Upsert<'_> = Upsert {
        table: "rows",
        key: &["name"],
        insert: &[("name", "{1}"), ("number", "{fresh}"), ("body", "{2}")],
        from: None,
        only_if: Some("{t}body IS NULL"),
        change: &[("number", "{t}number + 1"), ("body", "{new body}")],
        tells: Tells::Number("number"),
    };

    fn text(statement: &Statement) -> String {
        let zero = "(SELECT value FROM bot_meta WHERE name = 'floor')";
        statement.text().replace(zero, "FLOOR")
    }

    #[test]
    fn an_upsert_is_told_in_the_words_of_each_grammar() {
        let prefix = TablePrefix::new("bot_").unwrap();
        let returning = UPSERT.statement(&Dialect::POSTGRES, &prefix);
        assert!(
            text(&returning).ends_with(
                "ON CONFLICT (name) DO UPDATE SET number = t.number + 1, body = excluded.body \
                 WHERE t.body IS NULL RETURNING number"
            ),
            "{returning:?}"
        );
        assert_eq!(*returning.answer(), Answer::Rows);

        let mysql = UPSERT.statement(&Dialect::MYSQL, &prefix);
        assert_eq!(
            text(&mysql),
            "INSERT INTO bot_rows (name, number, body) VALUES (?, LAST_INSERT_ID(GREATEST(\
             TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1 + FLOOR)), ?) \
             ON DUPLICATE KEY UPDATE decided = body IS NULL, \
             number = IF(decided, LAST_INSERT_ID(number + 1), \
             number + LAST_INSERT_ID(number - number)), body = IF(decided, VALUES(body), body), \
             decided = NULL"
        );
        assert_eq!(*mysql.answer(), Answer::InsertId);
    }

    #[test]
    fn an_update_tells_a_number_that_it_does_not_change() {
        let prefix = TablePrefix::new("bot_").unwrap();
        let update = Update {
            table: "rows",
            change: &[("body", "{2}")],
            only_if: "name = {1} AND body = {2}",
            tells: Tells::Number("number"),
        };
        let mysql = update.statement(&Dialect::MYSQL, &prefix);
        assert_eq!(
            &**mysql.text(),
            "UPDATE bot_rows SET body = ?, number = LAST_INSERT_ID(number) \
             WHERE name = ? AND body = ?"
        );
        let values = ["a", "b"].map(crate::value::Value::from);
        let places: Vec<_> = mysql.in_places(&values).cloned().collect();
        assert_eq!(places, ["b", "a", "b"].map(crate::value::Value::from));
        let sqlite = update.statement(&Dialect::SQLITE, &prefix);
        assert_eq!(
            &**sqlite.text(),
            "UPDATE bot_rows AS t SET body = ?2 WHERE name = ?1 AND body = ?2 RETURNING number"
        );
    }

    #[test]
    fn a_row_is_read_by_its_key_after_it_was_written() {
        let prefix = TablePrefix::new("bot_").unwrap();
        let upsert = Upsert { only_if: None, tells: Tells::Row("number, body"), ..UPSERT };
        let mysql = upsert.statement(&Dialect::MYSQL, &prefix);
        assert_eq!(&**mysql.text(), "SELECT number, body FROM bot_rows WHERE name = ?");
        let [before] = mysql.before() else { panic!("{mysql:?}") };
        assert!(before.text().starts_with("INSERT INTO bot_rows"), "{before:?}");
    }
}
