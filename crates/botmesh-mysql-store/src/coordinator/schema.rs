//! The tables of the coordinator and the statements on them.

use botmesh_core::store::StoreError;
#[cfg(feature = "durability")]
use botmesh_sql::Steps;
use botmesh_sql::{Answer, Dialect, Part, Statement, TablePrefix, migrate};

use crate::MysqlStore;

/// What binds a name: a key or an incarnation, which have 1,024 bytes and a few more at most.
const TABLES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS {p}coordination_space (
        name VARBINARY(16) NOT NULL PRIMARY KEY,
        revision {integer} NOT NULL,
        floor {integer} NOT NULL,
        grace_until {integer} NOT NULL,
        server VARBINARY(1024),
        server_since {integer},
        jumped_at {integer} NOT NULL
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
    "CREATE TABLE IF NOT EXISTS {p}coordination_sessions (
        name VARBINARY(2048) NOT NULL PRIMARY KEY,
        expires_at {integer} NOT NULL,
        lease {integer} NOT NULL,
        registered_at {integer} NOT NULL,
        epoch {integer} NOT NULL
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
    // One row for each key, its queue included: the waiting tickets as JSON, the next one first. No
    // queue is null, so that the usual case is one comparison. When it was last used is kept in
    // units so long that the index on it hardly ever changes.
    "CREATE TABLE IF NOT EXISTS {p}coordination_turns (
        name VARBINARY(2048) NOT NULL PRIMARY KEY,
        revision {integer} NOT NULL,
        holder VARBINARY(2048),
        ticket {integer},
        fence {integer} NOT NULL,
        previous VARBINARY(2048),
        previous_fence {integer},
        queue LONGBLOB,
        expires_at {integer} NOT NULL,
        used {integer} NOT NULL,
        decided TINYINT,
        INDEX coordination_turns_used (used)
    ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
    // In memory, so that a restart of the server empties it.
    "CREATE TABLE IF NOT EXISTS {p}coordination_run (
        name VARBINARY(16) NOT NULL PRIMARY KEY,
        nonce {integer} NOT NULL
    ) ENGINE = MEMORY",
];

const COORDINATION: Part = Part { name: "coordination", versions: &[TABLES] };

/// Names the run of the server: it changes whenever writes that were confirmed may have been lost.
/// Another server may be a replica that was behind. The same one, restarted, has lost nothing if it
/// waits for its disk with each write; otherwise a number names its run that a restart forgets.
pub(super) const RUN: &str = "CONCAT(@@server_id, '/', @@hostname,
    IF(@@innodb_flush_log_at_trx_commit IN (1, 3), '', CONCAT('/',
    COALESCE((SELECT nonce FROM {p}coordination_run WHERE name = 'run'), ''))))";

/// Creates the tables, or brings them to this version.
pub(super) async fn prepare(store: &MysqlStore) -> Result<(), StoreError> {
    migrate(store.sql.driver(), store.sql.prefix(), &COORDINATION).await
}

/// The statements. Those that write answer with an insert id, which is zero if they wrote nothing.
#[derive(Debug)]
pub(super) struct Statements {
    /// The state, of one moment: the space, the turn of the key {1}, the sessions.
    pub(super) read: Statement,
    /// Gives this run of the server its number.
    pub(super) name_run: Statement,

    /// Takes a free key: key, caller, ticket, time that it is held, epoch.
    pub(super) take: Statement,
    /// As `take`, behind the admission of a message that was new.
    #[cfg(feature = "durability")]
    pub(super) take_if_admitted: Statement,
    /// What was taken: key, caller, ticket.
    pub(super) taken: Statement,
    /// Gives back a key for which nobody waits: key, caller, ticket, time that it is remembered.
    pub(super) give_back: Statement,
    /// As `give_back`, behind the end of a record that was applied.
    #[cfg(feature = "durability")]
    pub(super) give_back_if_ended: Statement,

    /// Has each statement of the next transaction see what others have committed before it.
    #[cfg(feature = "durability")]
    pub(super) see_commits: Statement,
    pub(super) begin: Statement,
    pub(super) forget_insert_id: Statement,
    /// The values of a space: revision, floor, grace, server, since, jumped; expected revision.
    pub(super) create_space: Statement,
    pub(super) replace_space: Statement,
    /// Keeps whether the space was written, for the statements that follow in the transaction.
    pub(super) keep_insert_id: Statement,
    pub(super) commit: Statement,
    /// The values of a turn: key, revision, holder, ticket, fence, previous, its fence, queue,
    /// expiry; expected revision.
    pub(super) create_turn: Turn,
    pub(super) replace_turn: Turn,

    /// Removes as many keys that nobody remembers as {1} says.
    pub(super) sweep: Statement,
    names: TablePrefix,
}

/// A write of a turn.
#[derive(Debug)]
pub(super) struct Turn {
    /// By itself.
    pub(super) alone: Statement,
    /// If the space was written before it.
    pub(super) after_space: Statement,
}

/// Set by `keep_insert_id`.
const SPACE_WRITTEN: &str = "@botmesh_space <> 0";

const USED: &str = "{now} DIV 600000000";

/// Only if `{only_if}` holds, too. The session is locked, as not each level of isolation would do: an
/// epoch that is raised waits for what was sent before it.
const TAKE: &str = "INSERT INTO {turns} (name, revision, holder, ticket, fence, expires_at, used)
    SELECT {1}, {now}, {2}, {3}, LAST_INSERT_ID(GREATEST({now}, s.floor + 1)),
        {now} + {4}, {used}
    FROM {p}coordination_space AS s INNER JOIN {p}coordination_sessions AS x
        ON x.name = {2}
    WHERE s.name = 'space' AND s.server = {run} AND s.grace_until <= {now}
        AND x.expires_at > {now} AND x.epoch <= {5} AND {only_if}
    LOCK IN SHARE MODE
    ON DUPLICATE KEY UPDATE
        decided = {turns}.expires_at <= {now}
            OR ({turns}.holder IS NULL AND {turns}.queue IS NULL),
        previous = IF({turns}.decided AND {turns}.expires_at <= {now}, NULL,
            {turns}.previous),
        previous_fence = IF({turns}.decided AND {turns}.expires_at <= {now}, NULL,
            {turns}.previous_fence),
        fence = IF({turns}.decided,
            LAST_INSERT_ID(GREATEST({turns}.fence + 1, VALUES(fence))),
            {turns}.fence + LAST_INSERT_ID({turns}.fence - {turns}.fence)),
        revision = IF({turns}.decided, GREATEST({now}, {turns}.revision + 1),
            {turns}.revision),
        holder = IF({turns}.decided, VALUES(holder), {turns}.holder),
        ticket = IF({turns}.decided, VALUES(ticket), {turns}.ticket),
        queue = IF({turns}.decided, NULL, {turns}.queue),
        used = IF({turns}.decided, VALUES(used), {turns}.used),
        expires_at = IF({turns}.decided, VALUES(expires_at), {turns}.expires_at),
        decided = NULL";

/// Only if `{only_if}` holds, too.
const GIVE_BACK: &str =
    "UPDATE {turns} SET revision = LAST_INSERT_ID(GREATEST({now}, revision + 1)),
        previous = holder, previous_fence = fence, holder = NULL, ticket = NULL,
        expires_at = {now} + {4}, used = {used}
    WHERE name = {1} AND holder = {2} AND ticket = {3} AND queue IS NULL
        AND expires_at > {now} AND {only_if}
        AND (SELECT server FROM {p}coordination_space WHERE name = 'space') = {run}";

impl Statements {
    /// Statements in which `run` is the expression that names the run of the server.
    pub(super) fn new(names: &TablePrefix, run: &str) -> Self {
        let render = |template: &str| {
            let template = template.replace("{run}", run).replace("{used}", USED);
            let template = template.replace("{turns}", "{p}coordination_turns");
            Dialect::MYSQL.statement(&template, names)
        };
        let counted = |template: &str| render(template).answered_by(Answer::InsertId);
        let create_turn = |condition: &str| {
            counted(&format!(
                "INSERT INTO {{turns}} (name, revision, holder, ticket, fence, previous,
                    previous_fence, queue, expires_at, used)
                SELECT {{1}}, LAST_INSERT_ID({{2}}), {{3}}, {{4}}, {{5}}, {{6}}, {{7}}, {{8}}, {{9}}, {{used}}
                FROM (SELECT 1 AS one) AS one WHERE {condition}
                ON DUPLICATE KEY UPDATE
                    revision = {{turns}}.revision + LAST_INSERT_ID({{turns}}.revision - {{turns}}.revision)"
            ))
        };
        let replace_turn = |condition: &str| {
            counted(&format!(
                "UPDATE {{turns}} SET revision = LAST_INSERT_ID({{2}}), holder = {{3}}, ticket = {{4}},
                    fence = {{5}}, previous = {{6}}, previous_fence = {{7}}, queue = {{8}},
                    expires_at = {{9}}, used = {{used}}
                WHERE name = {{1}} AND revision = {{10}} AND {condition}"
            ))
        };
        let take = |only_if: &str| counted(&TAKE.replace("{only_if}", only_if));
        let give_back = |only_if: &str| counted(&GIVE_BACK.replace("{only_if}", only_if));
        let turn = |write: &dyn Fn(&str) -> Statement| Turn {
            alone: write("1 = 1"),
            after_space: write(SPACE_WRITTEN),
        };
        Self {
            read: render(
                "SELECT 0, {now}, s.revision, s.floor, s.grace_until, s.server_since, s.jumped_at,
                    CAST({run} AS BINARY), s.server, NULL
                FROM (SELECT 1 AS one) AS one LEFT JOIN {p}coordination_space AS s ON s.name = 'space'
                UNION ALL SELECT 1, revision, fence, ticket, previous_fence, expires_at, NULL,
                    holder, previous, queue
                FROM {turns} WHERE name = {1}
                UNION ALL SELECT 2, expires_at, lease, registered_at, epoch, NULL, NULL,
                    name, NULL, NULL
                FROM {p}coordination_sessions",
            ),
            name_run: render(
                "INSERT INTO {p}coordination_run (name, nonce) VALUES ('run', {now})
                ON DUPLICATE KEY UPDATE nonce = nonce",
            ),
            take: take("1 = 1"),
            #[cfg(feature = "durability")]
            take_if_admitted: take(Steps::ADMITTED),
            taken: render(
                "SELECT fence, previous_fence, previous FROM {turns}
                WHERE name = {1} AND holder = {2} AND ticket = {3}",
            ),
            give_back: give_back("1 = 1"),
            #[cfg(feature = "durability")]
            give_back_if_ended: give_back(Steps::ENDED),
            #[cfg(feature = "durability")]
            see_commits: render("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"),
            begin: render("START TRANSACTION"),
            forget_insert_id: render("DO LAST_INSERT_ID(0)"),
            create_space: counted(
                "INSERT INTO {p}coordination_space
                    (name, revision, floor, grace_until, server, server_since, jumped_at)
                VALUES ('space', LAST_INSERT_ID({1}), {2}, {3}, {4}, {5}, {6})
                ON DUPLICATE KEY UPDATE revision = revision + LAST_INSERT_ID(revision - revision)",
            ),
            replace_space: counted(
                "UPDATE {p}coordination_space SET revision = LAST_INSERT_ID({1}), floor = {2},
                    grace_until = {3}, server = {4}, server_since = {5}, jumped_at = {6}
                WHERE name = 'space' AND revision = {7}",
            ),
            keep_insert_id: render("SET @botmesh_space = LAST_INSERT_ID()"),
            commit: render("COMMIT"),
            create_turn: turn(&create_turn),
            replace_turn: turn(&replace_turn),
            sweep: render(
                "DELETE FROM {turns} WHERE used < {used} AND expires_at <= {now} LIMIT {1}",
            ),
            names: names.clone(),
        }
    }

    /// Makes the sessions the `count` ones whose values follow each other: name, expiry, lease,
    /// begin, epoch. The first statement is absent when there is none.
    pub(super) fn sessions(&self, count: usize) -> (Option<Statement>, Statement) {
        let render = |template: &str| Dialect::MYSQL.statement(template, &self.names);
        let write = (count > 0).then(|| {
            let columns = ["name", "expires_at", "lease", "registered_at", "epoch"];
            let row = |index: usize| {
                let numbered = columns.iter().zip(index * 5 + 1..);
                let values = numbered.map(|(column, place)| format!("{{{place}}} AS {column}"));
                format!("SELECT {}", values.collect::<Vec<_>>().join(", "))
            };
            let rows = (0..count).map(row).collect::<Vec<_>>().join(" UNION ALL ");
            render(&format!(
                "INSERT INTO {{p}}coordination_sessions ({})
                SELECT * FROM ({rows}) AS those WHERE {SPACE_WRITTEN}
                ON DUPLICATE KEY UPDATE expires_at = VALUES(expires_at), lease = VALUES(lease),
                    registered_at = VALUES(registered_at), epoch = VALUES(epoch)",
                columns.join(", ")
            ))
        });
        let names = (0..count).map(|index| format!("{{{}}}", index * 5 + 1));
        let others = match count {
            0 => String::new(),
            _ => format!(" AND name NOT IN ({})", names.collect::<Vec<_>>().join(", ")),
        };
        let delete =
            format!("DELETE FROM {{p}}coordination_sessions WHERE {SPACE_WRITTEN}{others}");
        (write, render(&delete))
    }
}
