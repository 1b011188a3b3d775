use std::fmt::Write;
use std::sync::Arc;

use crate::prefix::TablePrefix;

/// A statement as its backend reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    text: Arc<str>,
}

impl Statement {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}

/// Where the backends' SQL differs.
///
/// Statements are written once, with these words in braces: `{1}`, `{2}` for values, `{p}` for
/// what the names of tables begin with and `{index}` for those of indexes, `{now}` and
/// `{greatest}` as below, and `{name}`, `{text}`, `{integer}` for the types of columns. The other
/// words abbreviate: `{live}` (a checkpoint `t` that is there and has not expired), `{fresh}` (the
/// number of a new row), `{floor}` (the number that all swept rows are below).
///
/// What the statements rely on, and what a further dialect has to put in its place: numbered
/// placeholders that may be repeated; `INSERT .. ON CONFLICT .. DO UPDATE .. WHERE`, in whose
/// assignments `t.column` is the old and `excluded.column` the new value; `RETURNING` of the new
/// row, where no row means that nothing was written. MySQL has neither: its driver will run the
/// update and a select of the row in one transaction, and must count the rows that it *matched*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The present moment in microseconds; it may stand still within one statement.
    now: &'static str,
    /// The function of the greatest of its arguments.
    greatest: &'static str,
    /// What stands before a placeholder's number.
    placeholder: char,
    /// The type of names: compared byte by byte, whatever the collation of the database.
    name: &'static str,
    /// The type of texts of any length.
    text: &'static str,
    /// The type of 64-bit integers.
    integer: &'static str,
    /// Removes as many rows of `{table}`, which has the key `{key}`, for which `{ended}` holds as
    /// value 2 says, the oldest `ends_at` first. Where several write at once, no row may be removed
    /// that another brings back meanwhile.
    remove_some: &'static str,
    /// Whether names and texts may contain a NUL.
    keeps_nul: bool,
}

impl Dialect {
    /// SQLite from 3.42.
    pub const SQLITE: Self = Self {
        now: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        greatest: "max",
        placeholder: '?',
        name: "TEXT COLLATE BINARY",
        text: "TEXT",
        integer: "BIGINT",
        remove_some: "DELETE FROM {table} WHERE ({key}) IN
            (SELECT {key} FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {2})",
        keeps_nul: false,
    };

    /// PostgreSQL from 14. Names and texts are bytes in UTF-8, so that neither the encoding nor
    /// the collation of the database matters, and a NUL is a character like others.
    pub const POSTGRES: Self = Self {
        // The moment when the statement arrived: unlike `clock_timestamp()` it lets an index be
        // used, and unlike `now()` it is not the one of a transaction that began long ago.
        now: "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)",
        greatest: "greatest",
        placeholder: '$',
        name: "BYTEA",
        text: "BYTEA",
        integer: "BIGINT",
        // By their place, or many rows would be joined with the whole table. Locked before, or one
        // that is being brought back would be waited for and then removed.
        remove_some: "DELETE FROM {table} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {2}
            FOR UPDATE SKIP LOCKED))",
        keeps_nul: true,
    };

    /// Whether names and texts may contain a NUL.
    pub(crate) const fn keeps_nul(&self) -> bool {
        self.keeps_nul
    }

    /// The template of a statement that removes some of the rows that have ended.
    pub(crate) fn remove_some(&self, table: &str, key: &str, ended: &str) -> String {
        let template = self.remove_some.replace("{table}", table);
        template.replace("{key}", key).replace("{ended}", ended)
    }

    /// The statement of this template.
    #[must_use]
    pub fn statement(&self, template: &str, prefix: &TablePrefix) -> Statement {
        let mut text = String::with_capacity(template.len() * 2);
        self.render(template, prefix, &mut text);
        Statement { text: text.into() }
    }

    fn render(&self, template: &str, prefix: &TablePrefix, text: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (word, after) = after.split_once('}').unwrap_or((after, ""));
            match word {
                "p" => prefix.write_qualified(text),
                "index" => text.push_str(prefix.as_str()),
                "now" => text.push_str(self.now),
                "greatest" => text.push_str(self.greatest),
                "name" => text.push_str(self.name),
                "text" => text.push_str(self.text),
                "integer" => text.push_str(self.integer),
                "live" => self.render(LIVE, prefix, text),
                "fresh" => self.render(FRESH, prefix, text),
                "floor" => self.render(FLOOR, prefix, text),
                number => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{}{number}", self.placeholder);
                }
            }
            rest = after;
        }
        text.push_str(rest);
    }
}

const LIVE: &str = "(t.body IS NOT NULL AND (t.ends_at IS NULL OR t.ends_at > {now}))";
const FRESH: &str = "{greatest}({now}, 1 + {floor})";
const FLOOR: &str = "(SELECT value FROM {p}meta WHERE name = 'floor')";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_replaced() {
        let prefix = TablePrefix::new("bot_").unwrap();
        let template = "SELECT {greatest}(a, {2}) FROM {p}rows AS t WHERE a = {1} AND {live}";
        assert_eq!(
            &**Dialect::SQLITE.statement(template, &prefix).text(),
            "SELECT max(a, ?2) FROM bot_rows AS t WHERE a = ?1 AND (t.body IS NOT NULL AND \
             (t.ends_at IS NULL OR t.ends_at > CAST(unixepoch('subsec') * 1000000 AS INTEGER)))"
        );
    }

    /// B6: tables are named with their schema, indexes, which lie where their table does, without.
    #[test]
    fn tables_are_named_with_their_schema() {
        let prefix = TablePrefix::new("bot_").unwrap().in_schema("shop").unwrap();
        let template = "CREATE INDEX {index}ends ON {p}rows (ends)";
        assert_eq!(
            &**Dialect::POSTGRES.statement(template, &prefix).text(),
            "CREATE INDEX bot_ends ON \"shop\".bot_rows (ends)"
        );
    }
}
