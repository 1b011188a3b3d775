use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::store::{
    Adopted, CheckpointStore, CheckpointWrite, ConditionalCheckpointStore, StoreError,
    StoredCheckpoint, Swap,
};
use botmesh_core::{ChatKey, Fence, Revision};

use crate::DriverError;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::{Row, Value};
use crate::write::{Tells, Update, Upsert};

#[derive(Debug)]
pub(crate) struct Statements {
    load: Statement,
    set: Statement,
    clear: Statement,
    to_wake: Statement,
    adopt: Statement,
    create_if: Statement,
    replace_if: Statement,
    clear_if: Statement,
}

/// The values of a write: chat, fence, body, time to wake, time to expire.
const SET: Upsert<'_> = Upsert {
    table: "checkpoints",
    key: &["chat"],
    insert: &[
        ("chat", "{1}"),
        ("revision", "{fresh}"),
        ("fence", "{2}"),
        ("body", "{3}"),
        ("wake_at", "{now} + {4}"),
        ("ends_at", "{now} + {5}"),
    ],
    from: None,
    only_if: None,
    change: &[
        ("revision", NEXT),
        ("fence", "{greatest}({t}fence, {new fence})"),
        ("body", "{new body}"),
        ("wake_at", "{new wake_at}"),
        ("ends_at", "{new ends_at}"),
    ],
    tells: Tells::Number("revision"),
};

pub(crate) const CREATE: Upsert<'_> =
    Upsert { only_if: Some("NOT {live} AND {t}fence <= {new fence}"), ..SET };

pub(crate) const REPLACE: Update<'_> = Update {
    table: "checkpoints",
    change: &[
        ("revision", NEXT),
        ("fence", "{2}"),
        ("body", "{3}"),
        ("wake_at", "{now} + {4}"),
        ("ends_at", "{now} + {5}"),
    ],
    only_if: "chat = {1} AND revision = {6} AND fence <= {2} AND {live}",
    tells: Tells::Number("revision"),
};

const CLEAR: Update<'_> = Update {
    table: "checkpoints",
    change: &[("revision", NEXT), ("body", "NULL"), ("wake_at", "NULL"), ("ends_at", "{now}")],
    only_if: "chat = {1} AND {live}",
    tells: Tells::Number("revision"),
};

pub(crate) const CLEAR_IF: Update<'_> = Update {
    change: &[
        ("revision", NEXT),
        ("fence", "{2}"),
        ("body", "NULL"),
        ("wake_at", "NULL"),
        ("ends_at", "{now}"),
    ],
    only_if: "chat = {1} AND revision = {3} AND fence <= {2} AND {live}",
    ..CLEAR
};

/// Whether the row lives is asked last of the columns that decide it.
const ADOPT: Upsert<'_> = Upsert {
    table: "checkpoints",
    key: &["chat"],
    insert: &[("chat", "{1}"), ("revision", "{fresh}"), ("fence", "{2}"), ("ends_at", "{now}")],
    from: None,
    only_if: None,
    change: &[
        ("prior_fence", "{t}fence"),
        ("fence", "{greatest}({t}fence, {new fence})"),
        ("wake_at", "CASE WHEN {live} THEN {t}wake_at END"),
        ("ends_at", "CASE WHEN {live} THEN {t}ends_at ELSE {now} END"),
        ("body", "CASE WHEN {live} THEN {t}body END"),
    ],
    tells: Tells::Row("revision, fence, body, wake_at - {now}, prior_fence"),
};

const NEXT: &str = "{greatest}({now}, {t}revision + 1)";

impl Statements {
    pub(crate) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        Self {
            load: dialect.statement(
                "SELECT revision, fence, body, wake_at - {now} FROM {p}checkpoints AS t
                WHERE chat = {1} AND {live}",
                names,
            ),
            set: SET.statement(dialect, names),
            clear: CLEAR.statement(dialect, names),
            to_wake: dialect.statement(
                "SELECT chat, wake_at - {now} FROM {p}checkpoints AS t
                WHERE wake_at <= {now} + {1} AND {live}
                ORDER BY wake_at, chat LIMIT {2}",
                names,
            ),
            adopt: ADOPT.statement(dialect, names),
            create_if: CREATE.statement(dialect, names),
            replace_if: REPLACE.statement(dialect, names),
            clear_if: CLEAR_IF.statement(dialect, names),
        }
    }
}

impl<D: Driver> SqlStore<D> {
    pub(crate) fn write_values(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Vec<Value>, StoreError> {
        let body = self.text("body", write.body)?;
        let fence = self.fence(fence)?;
        Ok(vec![key.as_str().into(), fence, body, write.wake_in.into(), write.expires_in.into()])
    }
}

/// Reads revision, fence, body and time to wake; none when there is no body.
fn stored(row: &mut Row) -> Result<Option<StoredCheckpoint>, DriverError> {
    let revision = Revision::new(row.number()?);
    let fence = Fence::new(row.number()?);
    let body = row.optional_text()?;
    let wake_in = row.optional_integer()?.map(left);
    Ok(body.map(|body| StoredCheckpoint { revision, fence, body, wake_in }))
}

fn left(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[async_trait]
impl<D: Driver> CheckpointStore for SqlStore<D> {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        const OPERATION: &str = "load checkpoint";
        let values = vec![key.as_str().into()];
        match self.read_row(OPERATION, &self.checkpoints.load, values).await? {
            None => Ok(None),
            Some(mut row) => stored(&mut row).map_err(self.named(OPERATION)),
        }
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        const OPERATION: &str = "set checkpoint";
        let values = self.write_values(key, write, fence)?;
        let row = self.write_row(OPERATION, &self.checkpoints.set, values).await?;
        let revision = row.unwrap_or_else(|| Row::new(Vec::new())).number();
        revision.map(Revision::new).map_err(self.named(OPERATION))
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        let values = vec![key.as_str().into()];
        self.write_row("clear checkpoint", &self.checkpoints.clear, values).await.map(drop)
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        let named = self.named("find checkpoints to wake");
        let limit = Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX));
        let values = vec![Value::micros(horizon), limit];
        let rows = self.driver.read(&self.checkpoints.to_wake, values).await.map_err(&named)?;
        let mut found = Vec::with_capacity(rows.len());
        for mut row in rows {
            let text = row.text().map_err(&named)?;
            let wake_in = left(row.integer().map_err(&named)?);
            match ChatKey::decode(&text) {
                Ok(key) => found.push((key, wake_in)),
                // One row that nobody can have written must not keep all others asleep.
                Err(error) => tracing::warn!(%error, "a stored checkpoint has no valid key"),
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl<D: Driver> ConditionalCheckpointStore for SqlStore<D> {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        const OPERATION: &str = "adopt checkpoint";
        let values = vec![key.as_str().into(), self.fence(fence)?];
        let row = self.write_row(OPERATION, &self.checkpoints.adopt, values).await?;
        let mut row = row.unwrap_or_else(|| Row::new(Vec::new()));
        let read = |row: &mut Row| {
            let checkpoint = stored(row)?;
            let previous = row.optional_integer()?.and_then(|fence| u64::try_from(fence).ok());
            Ok(Adopted { checkpoint, previous_fence: previous.map(Fence::new) })
        };
        read(&mut row).map_err(self.named(OPERATION))
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let mut values = self.write_values(key, write, fence)?;
        let statement = match expected {
            None => &self.checkpoints.create_if,
            Some(expected) => {
                values.push(Self::revision(expected));
                &self.checkpoints.replace_if
            }
        };
        self.swap("set checkpoint", statement, values).await
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let values = vec![key.as_str().into(), self.fence(fence)?, Self::revision(expected)];
        self.swap("clear checkpoint", &self.checkpoints.clear_if, values).await
    }
}
