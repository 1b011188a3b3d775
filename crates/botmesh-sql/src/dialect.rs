#[cfg(feature = "durability")]
use crate::inbox;
use crate::prefix::TablePrefix;
use crate::schema::{self, Part};
use crate::statement::{Rendering, Statement};

/// Where the backends' SQL differs.
///
/// Statements are written once, with these words in braces: `{1}`, `{2}` for values, `{p}` for
/// what the names of tables begin with and `{index}` for those of indexes, `{now}` and
/// `{greatest}` as below, and `{name}`, `{text}`, `{integer}` for the types of columns. Before the
/// name of a column, `{t}` says that its value in the row `t` is meant that is there already, and
/// `{new body}` is the value that an insertion has for `body`. The other words abbreviate:
/// `{live}` (a checkpoint `t` that is there and has not expired), `{fresh}` (the number of a new
/// row), `{floor}` (the number that all swept rows are below). In a statement that follows others,
/// `{changed}` is how many rows the one before it has changed, `{applied}` whether that was an
/// upsert or update that did what it was to do, and `{begun}` as in `inbox/begin.rs`.
///
/// Writes that tell something of the row that they wrote are not written as templates, for there
/// the grammars differ too much: see `Upsert` and `Update`.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The present moment in microseconds; it may stand still within one statement.
    now: &'static str,
    /// The function of the greatest of its arguments.
    greatest: &'static str,
    /// What stands before a placeholder's number.
    pub(crate) placeholder: char,
    /// Whether placeholders have numbers, so that a value may be used several times. Otherwise it is
    /// sent for each of its places.
    pub(crate) numbered: bool,
    /// Whether the grammar is that of PostgreSQL and SQLite, with `ON CONFLICT` and `RETURNING`, or
    /// that of MySQL.
    pub(crate) returning: bool,
    /// Whether a statement can make several changes, each by what the others gave, and functions can
    /// be defined. Otherwise statements are run in turn.
    #[cfg(feature = "durability")]
    pub(crate) combines: bool,
    /// How many rows the statement before this one has changed.
    changed: &'static str,
    /// Whether the write of a number, which is the statement before this one, was applied.
    applied: &'static str,
    /// The row of which the statement before this one has told the number, if it has.
    begun: &'static str,
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
    /// The longest name in bytes, where the backend would cut a longer one or tell of it badly.
    pub(crate) longest_name: Option<usize>,
    /// The tables of the store.
    pub(crate) tables: &'static Part,
    /// The tables and functions of the inbox.
    #[cfg(feature = "durability")]
    pub(crate) inbox: &'static Part,
}

impl Dialect {
    /// SQLite from 3.42.
    pub const SQLITE: Self = Self {
        now: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        greatest: "max",
        placeholder: '?',
        numbered: true,
        returning: true,
        #[cfg(feature = "durability")]
        combines: false,
        changed: "changes()",
        applied: "changes() > 0",
        begun: "1 = 1",
        name: "TEXT COLLATE BINARY",
        text: "TEXT",
        integer: "BIGINT",
        remove_some: "DELETE FROM {table} WHERE ({key}) IN
            (SELECT {key} FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {2})",
        keeps_nul: false,
        longest_name: None,
        tables: &schema::STORE,
        #[cfg(feature = "durability")]
        inbox: &inbox::SQLITE,
    };

    /// PostgreSQL from 14. Names and texts are bytes in UTF-8, so that neither the encoding nor
    /// the collation of the database matters, and a NUL is a character like others.
    pub const POSTGRES: Self = Self {
        // The moment when the statement arrived: unlike `clock_timestamp()` it lets an index be
        // used, and unlike `now()` it is not the one of a transaction that began long ago.
        now: "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)",
        greatest: "greatest",
        placeholder: '$',
        numbered: true,
        returning: true,
        #[cfg(feature = "durability")]
        combines: true,
        changed: "",
        applied: "",
        begun: "",
        name: "BYTEA",
        text: "BYTEA",
        integer: "BIGINT",
        // By their place, or many rows would be joined with the whole table. Locked before, or one
        // that is being brought back would be waited for and then removed.
        remove_some: "DELETE FROM {table} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {2}
            FOR UPDATE SKIP LOCKED))",
        keeps_nul: true,
        longest_name: None,
        tables: &schema::STORE,
        #[cfg(feature = "durability")]
        inbox: &inbox::POSTGRES,
    };

    /// MySQL from 8.0 and MariaDB from 10.6. Names and texts are bytes in UTF-8 here too.
    pub const MYSQL: Self = Self {
        // When the statement began, whatever the time zone; `SYSDATE` would move while it runs.
        now: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
        greatest: "GREATEST",
        placeholder: '?',
        numbered: false,
        returning: false,
        #[cfg(feature = "durability")]
        combines: false,
        changed: "ROW_COUNT()",
        // A row that is left as it was counts as changed, too.
        applied: "LAST_INSERT_ID() > 0",
        begun: "(ROW_COUNT() = 0 OR {t}position = LAST_INSERT_ID())",
        name: "VARBINARY(3000)",
        text: "LONGBLOB",
        integer: "BIGINT",
        // A row that somebody changes is waited for, and read again then.
        remove_some: "DELETE FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {2}",
        keeps_nul: true,
        longest_name: Some(3000),
        tables: &schema::STORE_IN_MYSQL,
        #[cfg(feature = "durability")]
        inbox: &inbox::MYSQL,
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
        let mut rendering = Rendering::new(self, prefix);
        rendering.template(template);
        rendering.finish()
    }

    /// What a word stands for; none when it is the number of a value, or a name.
    pub(crate) fn word(&self, word: &str) -> Option<&'static str> {
        Some(match word {
            "now" => self.now,
            "greatest" => self.greatest,
            "name" => self.name,
            "text" => self.text,
            "integer" => self.integer,
            "t" if self.returning => "t.",
            "t" => "",
            "live" => LIVE,
            "fresh" => FRESH,
            "floor" => FLOOR,
            "changed" => self.changed,
            "applied" => self.applied,
            "begun" => self.begun,
            _ => return None,
        })
    }
}

const LIVE: &str = "({t}body IS NOT NULL AND ({t}ends_at IS NULL OR {t}ends_at > {now}))";
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
