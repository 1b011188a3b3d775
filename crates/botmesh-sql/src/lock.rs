use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::Fence;
use botmesh_core::store::{FencedLock, LockStore, LockToken, StoreError};

use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::Value;
use crate::write::{Tells, Update, Upsert};

#[derive(Debug)]
pub(crate) struct Statements {
    acquire: Statement,
    renew: Statement,
    release: Statement,
}

const ACQUIRE: Upsert<'_> = Upsert {
    table: "locks",
    key: &["name"],
    insert: &[("name", "{1}"), ("fence", "{fresh}"), ("token", "{2}"), ("ends_at", "{now} + {3}")],
    from: None,
    only_if: Some("{t}token IS NULL OR {t}ends_at <= {now}"),
    change: &[
        ("fence", "{greatest}({now}, {t}fence + 1)"),
        ("token", "{new token}"),
        ("ends_at", "{new ends_at}"),
    ],
    tells: Tells::Number("fence"),
};

const RENEW: Update<'_> = Update {
    table: "locks",
    change: &[("ends_at", "{now} + {3}")],
    only_if: HELD,
    tells: Tells::Number("fence"),
};

const RELEASE: Update<'_> = Update { change: &[("token", "NULL"), ("ends_at", "{now}")], ..RENEW };

const HELD: &str = "name = {1} AND token = {2} AND ends_at > {now}";

impl Statements {
    pub(crate) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        Self {
            acquire: ACQUIRE.statement(dialect, names),
            renew: RENEW.statement(dialect, names),
            release: RELEASE.statement(dialect, names),
        }
    }
}

#[async_trait]
impl<D: Driver> LockStore for SqlStore<D> {
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError> {
        const OPERATION: &str = "acquire lock";
        let token = LockToken::random();
        let values = vec![self.key(key)?, token.as_str().into(), Value::micros(ttl)];
        let Some(mut row) = self.write_row(OPERATION, &self.locks.acquire, values).await? else {
            return Ok(None);
        };
        let fence = Fence::new(row.number().map_err(self.named(OPERATION))?);
        Ok(Some(FencedLock { token, fence }))
    }

    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let values = vec![self.key(key)?, token.as_str().into(), Value::micros(ttl)];
        let row = self.write_row("renew lock", &self.locks.renew, values).await?;
        Ok(row.is_some())
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        let values = vec![self.key(key)?, token.as_str().into()];
        let row = self.write_row("release lock", &self.locks.release, values).await?;
        Ok(row.is_some())
    }
}
