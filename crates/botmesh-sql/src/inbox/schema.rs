//! The tables of the inbox.

use crate::schema::Part;

/// A claim, which is never begun. The numbers stand in the statements as they are, for otherwise
/// no index with a condition would be used.
pub(super) const CLAIMED: i64 = 0;
/// To be processed.
pub(super) const PENDING: i64 = 1;
/// Processed. Without a message there is nothing to be known again.
pub(super) const DONE: i64 = 2;
/// Given up.
pub(super) const DEAD: i64 = 3;

/// A moment before all others, at which ended what may be forgotten at once.
pub(super) const LONG_AGO: &str = "-3000000000000000000";

/// The inbox in SQLite.
pub(crate) const SQLITE: Part =
    Part { name: "inbox", versions: &[&[TABLE, TO_BEGIN, DEAD_LETTERS, MESSAGES, WAITING, ENDED]] };

/// The inbox in PostgreSQL.
pub(crate) const POSTGRES: Part = Part {
    name: "inbox",
    versions: &[&[
        TABLE,
        TO_BEGIN,
        DEAD_LETTERS,
        MESSAGES,
        WAITING,
        ENDED,
        include_str!("sql/admit.sql"),
    ]],
};

/// The inbox in MySQL. Who admits to a chat takes its gate first; the gates are many, so that
/// chats rarely share one.
pub(crate) const MYSQL: Part = Part {
    name: "inbox",
    versions: &[&[
        "CREATE TABLE IF NOT EXISTS {p}inbox (
            chat VARBINARY(1024) NOT NULL,
            position {integer} NOT NULL,
            provider VARBINARY(1024) NOT NULL,
            message VARBINARY(1024),
            state {integer} NOT NULL,
            fence {integer},
            attempts {integer} NOT NULL,
            body {text},
            sends {text},
            error {text},
            due_at {integer} NOT NULL,
            ends_at {integer} NOT NULL,
            PRIMARY KEY (chat, position),
            UNIQUE INDEX inbox_messages (chat, message),
            INDEX inbox_order (state, chat, position),
            INDEX inbox_waiting (state, provider, ends_at),
            INDEX inbox_ended (state, ends_at)
        ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
        "CREATE TABLE IF NOT EXISTS {p}inbox_gates (number {integer} NOT NULL PRIMARY KEY)
        ENGINE = InnoDB",
        "INSERT IGNORE INTO {p}inbox_gates (number)
        WITH eight AS (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3
            UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7)
        SELECT a.n + 8 * b.n + 64 * c.n FROM eight AS a, eight AS b, eight AS c",
    ]],
};

/// How many gates there are in MySQL.
pub(super) const GATES: u32 = 512;

/// `ends_at` is when the lease of a pending record or of a claim ends, and when one that is done or
/// dead ended.
const TABLE: &str = "CREATE TABLE {p}inbox (
    chat {name} NOT NULL,
    position {integer} NOT NULL,
    provider {name} NOT NULL,
    message {name},
    state {integer} NOT NULL,
    fence {integer},
    attempts {integer} NOT NULL,
    body {text},
    sends {text},
    error {text},
    due_at {integer} NOT NULL,
    ends_at {integer} NOT NULL,
    PRIMARY KEY (chat, position)
)";
const TO_BEGIN: &str =
    "CREATE INDEX {index}inbox_to_begin ON {p}inbox (chat, position) WHERE state = 1";
const DEAD_LETTERS: &str =
    "CREATE INDEX {index}inbox_dead ON {p}inbox (chat, position) WHERE state = 3";
const MESSAGES: &str = "CREATE UNIQUE INDEX {index}inbox_messages ON {p}inbox (chat, message) WHERE message IS NOT NULL";
const WAITING: &str =
    "CREATE INDEX {index}inbox_waiting ON {p}inbox (provider, ends_at) WHERE state = 1";
const ENDED: &str = "CREATE INDEX {index}inbox_ended ON {p}inbox (state, ends_at) WHERE state <> 1";
