//! The tables and functions of the coordinator, and the statements that call them.

use botmesh_core::store::StoreError;
use botmesh_sql::{Dialect, Part, Statement, TablePrefix, migrate};

use crate::PostgresStore;

const COORDINATION: Part = Part {
    name: "coordination",
    versions: &[
        &[
            include_str!("sql/tables.sql"),
            include_str!("sql/sessions.sql"),
            include_str!("sql/turns.sql"),
        ],
        &[include_str!("sql/crowd.sql")],
        &[include_str!("sql/judge.sql")],
        &[include_str!("sql/arrive.sql")],
        &[include_str!("sql/journal.sql")],
    ],
};

/// Creates the tables and functions, or brings them to this version.
pub(super) async fn prepare(store: &PostgresStore) -> Result<(), StoreError> {
    migrate(store.sql.driver(), store.sql.prefix(), &COORDINATION).await
}

/// The calls of the functions.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) register: Statement,
    pub(super) heartbeat: Statement,
    pub(super) stop: Statement,
    pub(super) ask: Statement,
    pub(super) release: Statement,
    pub(super) touch: Statement,
    pub(super) sweep: Statement,
    /// Reserves and releases many keys that nobody waits for.
    pub(super) batch: Statement,
    /// Reserves and releases keys that others compete for.
    pub(super) crowd: Statement,
}

impl Statements {
    pub(super) fn new(names: &TablePrefix) -> Self {
        let render = |template: &str| Dialect::POSTGRES.statement(template, names);
        let answer = "SELECT code, first, second, third, before FROM {p}coordination_";
        let call = |call: &str| render(&format!("{answer}{call}"));
        Self {
            register: render(
                "SELECT code, first, second FROM {p}coordination_register({1}, {2}, {3}, {4})",
            ),
            heartbeat: render("SELECT {p}coordination_heartbeat({1}, {2}, {3}, {4})"),
            stop: render("SELECT {p}coordination_stop({1}, {2})"),
            ask: call("ask({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8})"),
            release: call("release({1}, {2}, {3}, {4}, {5}, {6})"),
            touch: render("SELECT {p}coordination_touch({1}, {2}, {3}, {4}, {5})"),
            sweep: render("SELECT {p}coordination_sweep({1})"),
            batch: render(include_str!("sql/batch.sql")),
            crowd: call("decide({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9})"),
        }
    }
}
