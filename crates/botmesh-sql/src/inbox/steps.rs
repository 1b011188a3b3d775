//! Steps of the inbox in a transaction of somebody else, where statements are run in turn, as in
//! MySQL. What one of them has found out is kept in variables of the connection, for those behind it.

use botmesh_core::store::{Commit, StoreError};

use super::admit;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::Value;

/// Statements between those of an inbox and those of somebody else.
#[derive(Debug)]
pub struct Steps {
    keep_admission: Statement,
    begin: Statement,
    tell_admission: Statement,
    keep_end: Statement,
    tell_end: Statement,
}

/// Its position is known by now, so that this record alone is locked: whoever ends another one of
/// the chat may wait for what this transaction has.
const BEGIN: &str = "UPDATE {p}inbox SET fence = LAST_INSERT_ID(), attempts = 1
    WHERE {applied} AND @botmesh_admitted > 0 AND @botmesh_waiting = 0
        AND chat = {1} AND position = @botmesh_place AND state = 1";

impl Steps {
    /// A condition of statements behind an [admission](Self::admission): the message was new.
    pub const ADMITTED: &str = "@botmesh_admitted > 0";
    /// A condition of statements behind an [end](Self::end): it was applied.
    pub const ENDED: &str = "@botmesh_ended > 0";

    /// The statements of an inbox whose tables' names begin with `names`.
    #[must_use]
    pub fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        let render = |template: &str| dialect.statement(template, names);
        let kept = "@botmesh_admitted, @botmesh_known, @botmesh_place, @botmesh_waiting";
        Self {
            keep_admission: render(&format!("{} INTO {kept}", admit::TELL)),
            begin: render(BEGIN),
            tell_admission: render(
                "SELECT CAST(@botmesh_admitted AS SIGNED), CAST(@botmesh_known AS SIGNED),
                    CAST(@botmesh_place AS SIGNED), CAST(@botmesh_waiting AS SIGNED)",
            ),
            keep_end: render("SET @botmesh_ended = LAST_INSERT_ID()"),
            tell_end: render("SELECT CAST(@botmesh_ended AS SIGNED)"),
        }
    }

    /// What admits a message, on the values of [`Joined::admission`](super::Joined::admission).
    pub fn admission<'a, D: Driver>(
        &'a self,
        store: &'a SqlStore<D>,
    ) -> impl Iterator<Item = &'a Statement> {
        store.inbox.admit.before().iter().chain([&self.keep_admission])
    }

    /// Begins a record that was admitted, if nothing else of its chat is pending and the statement
    /// before this one has told a fence by `LAST_INSERT_ID`. The values: those of the admission.
    #[must_use]
    pub const fn begin(&self) -> &Statement {
        &self.begin
    }

    /// Tells what [`Joined::admitted`](super::Joined::admitted) reads.
    #[must_use]
    pub const fn tell_admission(&self) -> &Statement {
        &self.tell_admission
    }

    /// The statement of an end by itself, and its values.
    ///
    /// # Errors
    /// [`StoreError`] for what the backend cannot hold.
    pub fn ending<D: Driver>(
        store: &SqlStore<D>,
        commit: &Commit<'_>,
    ) -> Result<(Statement, Vec<Value>), StoreError> {
        let (statement, values) = store.ending(&store.inbox.commit, commit)?;
        Ok((statement.clone(), values))
    }

    /// What makes the end of [`ending`](Self::ending), on its values. `LAST_INSERT_ID` must be zero
    /// before.
    pub fn end<'a>(&'a self, ending: &'a Statement) -> impl Iterator<Item = &'a Statement> {
        // The last one of several only tells.
        let changes = match ending.before() {
            [] => std::slice::from_ref(ending),
            changes => changes,
        };
        changes.iter().chain([&self.keep_end])
    }

    /// Tells one number: zero when the end was refused, else what
    /// [`Joined::committed`](super::Joined::committed) reads.
    #[must_use]
    pub const fn tell_end(&self) -> &Statement {
        &self.tell_end
    }
}
