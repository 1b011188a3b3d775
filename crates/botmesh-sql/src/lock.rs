use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::Fence;
use botmesh_core::store::{FencedLock, LockStore, LockToken, StoreError};

use crate::dialect::Statement;
use crate::driver::Driver;
use crate::store::SqlStore;
use crate::value::Value;

#[derive(Debug)]
pub(crate) struct Statements {
    acquire: Statement,
    renew: Statement,
    release: Statement,
}

impl Statements {
    pub(crate) fn new(render: impl Fn(&str) -> Statement) -> Self {
        Self {
            acquire: render(
                "INSERT INTO {p}locks AS t (name, fence, token, ends_at)
                VALUES ({1}, {fresh}, {2}, {now} + {3})
                ON CONFLICT (name) DO UPDATE SET
                    fence = {greatest}({now}, t.fence + 1),
                    token = excluded.token, ends_at = excluded.ends_at
                WHERE t.token IS NULL OR t.ends_at <= {now}
                RETURNING fence",
            ),
            renew: render(
                "UPDATE {p}locks SET ends_at = {now} + {3}
                WHERE name = {1} AND token = {2} AND ends_at > {now}
                RETURNING fence",
            ),
            release: render(
                "UPDATE {p}locks SET token = NULL, ends_at = {now}
                WHERE name = {1} AND token = {2} AND ends_at > {now}
                RETURNING fence",
            ),
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
        let values = vec![self.text("key", key)?, token.as_str().into(), Value::micros(ttl)];
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
        let values = vec![self.text("key", key)?, token.as_str().into(), Value::micros(ttl)];
        let row = self.write_row("renew lock", &self.locks.renew, values).await?;
        Ok(row.is_some())
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        let values = vec![self.text("key", key)?, token.as_str().into()];
        let row = self.write_row("release lock", &self.locks.release, values).await?;
        Ok(row.is_some())
    }
}
