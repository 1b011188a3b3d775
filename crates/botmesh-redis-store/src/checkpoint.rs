use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Revision};
use botmesh_core::store::{
    Adopted, CheckpointStore, CheckpointWrite, ConditionalCheckpointStore, FENCE_MEMORY,
    StoreError, StoredCheckpoint, Swap,
};
use futures_util::future::try_join_all;
use redis::Value;

use crate::error::corrupt;
use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

/// In place of an expected revision: whatever is there.
const ANY: &str = "*";

impl RedisStore {
    async fn set(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: &str,
        fence: Fence,
        repeat: Repeat,
    ) -> Result<Swap, StoreError> {
        let [row, wakes] = self.space().checkpoint(key.as_str());
        let (fence, request) = (argument::fence(fence), self.request());
        let (wake, end) = (argument::end(write.wake_in), argument::end(write.expires_in));
        let memory = argument::time(FENCE_MEMORY);
        let arguments: [&[u8]; 8] = [
            key.as_str().as_bytes(),
            fence.as_bytes(),
            expected.as_bytes(),
            write.body.as_bytes(),
            wake.as_bytes(),
            end.as_bytes(),
            memory.as_bytes(),
            request.as_bytes(),
        ];
        let keys = [row.as_str(), wakes.as_str()];
        let script = &script::CHECKPOINT_SET;
        let answer = self.call("writing a checkpoint", repeat, script, &keys, &arguments).await?;
        reply::swap(answer)
    }

    async fn clear(
        &self,
        key: &ChatKey,
        expected: &str,
        fence: Fence,
        repeat: Repeat,
    ) -> Result<Swap, StoreError> {
        let [row, wakes] = self.space().checkpoint(key.as_str());
        let (fence, request) = (argument::fence(fence), self.request());
        let memory = argument::time(FENCE_MEMORY);
        let arguments: [&[u8]; 5] = [
            key.as_str().as_bytes(),
            fence.as_bytes(),
            expected.as_bytes(),
            memory.as_bytes(),
            request.as_bytes(),
        ];
        let keys = [row.as_str(), wakes.as_str()];
        let script = &script::CHECKPOINT_CLEAR;
        let answer = self.call("clearing a checkpoint", repeat, script, &keys, &arguments).await?;
        reply::swap(answer)
    }

    /// The chats to be woken of one index.
    async fn wakes_of(
        &self,
        index: String,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(Duration, ChatKey)>, StoreError> {
        let (horizon, limit) = (argument::time(horizon), limit.to_string());
        let answer = self
            .call(
                "finding checkpoints to wake",
                Repeat::Freely,
                &script::CHECKPOINT_WAKES,
                &[&index],
                &[horizon.as_bytes(), limit.as_bytes()],
            )
            .await?;
        let Value::Array(parts) = answer else {
            return Err(corrupt("a list of chats to wake", "it is no list"));
        };
        let mut parts = parts.into_iter();
        let mut found = Vec::with_capacity(parts.len() / 2);
        while let (Some(chat), Some(left)) = (parts.next(), parts.next()) {
            let chat = reply::text(chat, "a chat to wake")?;
            let chat = ChatKey::decode(&chat)
                .map_err(|error| corrupt("a chat to wake", error.to_string()))?;
            found.push((reply::time(left, "the time until a waking")?, chat));
        }
        Ok(found)
    }
}

#[async_trait]
impl CheckpointStore for RedisStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        let [row, _] = self.space().checkpoint(key.as_str());
        let script = &script::CHECKPOINT_LOAD;
        let answer =
            self.call("reading a checkpoint", Repeat::Freely, script, &[&row], &[]).await?;
        match reply::optional(answer) {
            Some(row) => read_row(reply::array(row, "a checkpoint")?).map(Some),
            None => Ok(None),
        }
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        match self.set(key, write, ANY, fence, Repeat::IfNotExecuted).await? {
            Swap::Applied(revision) => Ok(revision),
            Swap::Refused => Err(corrupt("an answer", "an unconditional write was refused")),
        }
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        self.clear(key, ANY, Fence::new(0), Repeat::IfNotExecuted).await.map(drop)
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        let indexes = self.space().wakes();
        let found =
            try_join_all(indexes.into_iter().map(|index| self.wakes_of(index, horizon, limit)));
        let mut found: Vec<_> = found.await?.into_iter().flatten().collect();
        found.sort_unstable();
        found.truncate(limit);
        Ok(found.into_iter().map(|(left, chat)| (chat, left)).collect())
    }
}

#[async_trait]
impl ConditionalCheckpointStore for RedisStore {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        let [row, wakes] = self.space().checkpoint(key.as_str());
        let (fence, memory) = (argument::fence(fence), argument::time(FENCE_MEMORY));
        let arguments: [&[u8]; 3] = [key.as_str().as_bytes(), fence.as_bytes(), memory.as_bytes()];
        let answer = self
            .call(
                "adopting a checkpoint",
                Repeat::Freely,
                &script::CHECKPOINT_ADOPT,
                &[&row, &wakes],
                &arguments,
            )
            .await?;
        let Value::Array(mut parts) = answer else {
            return Err(corrupt("a checkpoint", "it is no list"));
        };
        if parts.is_empty() {
            return Err(corrupt("a checkpoint", "it is empty"));
        }
        let previous = reply::optional(parts.remove(0));
        let previous = previous.map(|value| reply::number(value, "a fence")).transpose()?;
        let checkpoint = match parts.is_empty() {
            true => None,
            false => Some(read_row(reply::array(Value::Array(parts), "a checkpoint")?)?),
        };
        Ok(Adopted { checkpoint, previous_fence: previous.map(Fence::new) })
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let expected = argument::expected(expected);
        self.set(key, write, &expected, fence, Repeat::Freely).await
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let expected = argument::expected(Some(expected));
        self.clear(key, &expected, fence, Repeat::Freely).await
    }
}

fn read_row([revision, fence, wake, body]: [Value; 4]) -> Result<StoredCheckpoint, StoreError> {
    let wake = reply::optional(wake).map(|wake| reply::time(wake, "the time until a waking"));
    Ok(StoredCheckpoint {
        revision: Revision::new(reply::number(revision, "the revision of a checkpoint")?),
        fence: Fence::new(reply::number(fence, "the fence of a checkpoint")?),
        body: reply::text(body, "the body of a checkpoint")?,
        wake_in: wake.transpose()?,
    })
}
