use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::Fence;
use botmesh_core::store::{FENCE_MEMORY, FencedLock, LockStore, LockToken, StoreError};

use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

#[async_trait]
impl LockStore for RedisStore {
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError> {
        let (name, token) = (self.space().lock(key), LockToken::random());
        let (ttl, memory) = (argument::time(ttl), argument::time(FENCE_MEMORY));
        let answer = self
            .call(
                "acquiring a lock",
                Repeat::Freely,
                &script::LOCK_ACQUIRE,
                &[&name],
                &[token.as_str().as_bytes(), ttl.as_bytes(), memory.as_bytes()],
            )
            .await?;
        let fence = reply::optional(answer).map(|fence| reply::number(fence, "a fence"));
        Ok(fence.transpose()?.map(|fence| FencedLock { token, fence: Fence::new(fence) }))
    }

    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let name = self.space().lock(key);
        let (ttl, memory) = (argument::time(ttl), argument::time(FENCE_MEMORY));
        let answer = self
            .call(
                "renewing a lock",
                Repeat::Freely,
                &script::LOCK_RENEW,
                &[&name],
                &[token.as_str().as_bytes(), ttl.as_bytes(), memory.as_bytes()],
            )
            .await?;
        reply::flag(answer, "the outcome of a renewal")
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        let (name, request) = (self.space().lock(key), self.request());
        let memory = argument::time(FENCE_MEMORY);
        let answer = self
            .call(
                "releasing a lock",
                Repeat::Freely,
                &script::LOCK_RELEASE,
                &[&name],
                &[token.as_str().as_bytes(), memory.as_bytes(), request.as_bytes()],
            )
            .await?;
        reply::flag(answer, "the outcome of a release")
    }
}
