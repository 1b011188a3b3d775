use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;
use crate::id::{ChatKey, Fence, Revision};

/// How long the fence of a cleared or expired row is remembered at least.
pub const FENCE_MEMORY: Duration = Duration::from_secs(10 * 60);

/// The outcome of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a refused write has changed nothing"]
pub enum Swap {
    /// It was written; the row now has this revision. (After a removal: the revision of the
    /// removal, which names no row.)
    Applied(Revision),
    /// The condition did not hold; nothing was changed.
    Refused,
}

/// The stored position of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// Names this version.
    pub revision: Revision,
    /// The highest fence under which the row was written or adopted.
    pub fence: Fence,
    /// Any UTF-8 text without NUL; botmesh keeps JSON in it.
    pub body: String,
    /// The time that is left until the conversation must be woken, zero when that has passed;
    /// none when nothing is to happen by itself.
    pub wake_in: Option<Duration>,
}

/// A checkpoint to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointWrite<'a> {
    /// Any UTF-8 text without NUL.
    pub body: &'a str,
    /// Wake the conversation after this time, told by the backend's clock.
    pub wake_in: Option<Duration>,
    /// The row counts as absent after this time; none for ever.
    pub expires_in: Option<Duration>,
}

/// Checkpoints without conditions: what the simplest custom store has.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// Reads the checkpoint of a chat. Safe to cancel.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError>;

    /// Writes the checkpoint of a chat whatever was there. The row's fence becomes that of the
    /// writer, unless a higher one is known.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError>;

    /// Removes the checkpoint of a chat whatever was there; its fence is remembered.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError>;

    /// The chats whose conversation has to be woken within `horizon`, the earliest first, and at
    /// most `limit` of them. Rows that are due already count as zero left.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError>;
}

/// Checkpoints by compare-and-set on revision and fence, each call one atomic step at the backend.
///
/// # What an implementation keeps
/// - A write is applied if the row's revision is `expected` (`None`: there is no row, or it has
///   expired) **and** no higher fence has written, cleared or adopted the row.
/// - Each applied write gives the row a revision that this key never had before.
/// - The fence of a key never falls. That of a cleared or expired row, and one that was adopted
///   where there was no row, is remembered for at least [`FENCE_MEMORY`], so that a writer from
///   before cannot make the row anew.
#[async_trait]
pub trait ConditionalCheckpointStore: Send + Sync {
    /// Reads the checkpoint and raises the fence of the row to `fence`, also when there is no row.
    /// From then on no lower fence can write. The returned fence is the one from before: when it
    /// is higher than `fence`, the caller is the stale one and can write nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError>;

    /// Writes the checkpoint if the row's revision is `expected` and no higher fence was here.
    ///
    /// # Errors
    /// [`StoreError`]. A condition that does not hold is no error but [`Swap::Refused`].
    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError>;

    /// Removes the checkpoint if the row's revision is `expected` and no higher fence was here.
    ///
    /// # Errors
    /// [`StoreError`]. A condition that does not hold is no error but [`Swap::Refused`].
    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError>;
}

/// What [`adopt_checkpoint`](ConditionalCheckpointStore::adopt_checkpoint) found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The checkpoint, if there is one.
    pub checkpoint: Option<StoredCheckpoint>,
    /// The highest fence known for this key before the call, also when there is no checkpoint.
    pub previous_fence: Option<Fence>,
}
