use std::sync::atomic::Ordering;

use botmesh_core::store::FENCE_MEMORY;

use crate::DriverError;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::Value;

/// After how many writes one table is swept.
const EVERY: u64 = 128;

/// How many rows one sweep removes at most: more than are written in between, in all tables.
const AT_MOST: i64 = 1_024;

/// What removes the rows of one table that ended longer than `FENCE_MEMORY` ago.
#[derive(Debug)]
pub(crate) struct Statements {
    raise_floor: Statement,
    remove: Statement,
}

impl Statements {
    /// Two statements for each table, each atomic by itself: the floor is raised above the numbers
    /// of ended rows first, then rows below the floor are removed that are still ended.
    pub(crate) fn of_all_tables(dialect: Dialect, names: &TablePrefix) -> Vec<Self> {
        let tables = [
            ("documents", "collection, name", "revision"),
            ("checkpoints", "chat", "revision"),
            ("locks", "name", "fence"),
        ];
        let statements = tables.map(|(table, key, number)| {
            let table = format!("{{p}}{table}");
            let ended = "ends_at <= {now} - {1}";
            let highest = format!(
                "(SELECT max(ended) FROM
                (SELECT {number} AS ended FROM {table} WHERE {ended} ORDER BY ends_at LIMIT {{2}})
                AS swept)"
            );
            let raise_floor = format!(
                "UPDATE {{p}}meta SET value = {highest} WHERE name = 'floor' AND value < {highest}"
            );
            let below = format!("{ended} AND {number} <= {{floor}}");
            let remove = dialect.remove_some(&table, key, &below);
            Self {
                raise_floor: dialect.statement(&raise_floor, names),
                remove: dialect.statement(&remove, names),
            }
        });
        statements.into()
    }
}

impl<D: Driver> SqlStore<D> {
    /// Counts a write, and sweeps one of the tables after every so many of them. A failure is no
    /// failure of the write; the next sweep tries again.
    pub async fn sweep_now_and_then(&self) {
        let writes = self.writes.fetch_add(1, Ordering::Relaxed);
        if writes % EVERY == EVERY - 1
            && let Err(error) = self.sweep(writes / EVERY).await
        {
            tracing::debug!(%error, store = self.driver.store(), "ended rows were not swept");
        }
    }

    async fn sweep(&self, turn: u64) -> Result<(), DriverError> {
        let table = usize::try_from(turn).unwrap_or_default() % self.sweeps.len();
        let values = vec![Value::micros(FENCE_MEMORY), Value::Integer(AT_MOST)];
        self.driver.write(&self.sweeps[table].raise_floor, values.clone()).await?;
        self.driver.write(&self.sweeps[table].remove, values).await.map(drop)
    }
}
