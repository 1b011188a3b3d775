use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::crash_points::{CrashPoints, Fate};
use crate::id::{ChatKey, Fence, Position, ProviderId, Revision};
use crate::store::{
    Admission, Adopted, Begun, CheckpointStore, CheckpointWrite, Collection, Commit, Committed,
    ConditionalCheckpointStore, DeadLetter, Document, DocumentStore, InboxStore, LockStore,
    NewRecord, Postponement, Realm, Retention, Store, StoreError, StoredCheckpoint, Swap,
};

/// A store whose process dies at one of its [`CrashPoints`], and whose calls fail as those say.
#[derive(Debug, Clone)]
pub struct CrashingStore {
    inner: Arc<dyn Store>,
    points: CrashPoints,
    realm: Realm,
}

impl CrashingStore {
    /// The same data as `inner`, for a process that dies as `points` say.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, points: CrashPoints) -> Self {
        Self { inner, points, realm: Realm::new() }
    }

    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let away = || StoreError::Unavailable {
            store: self.inner.name(),
            operation: "a call",
            source: "the test lost it".into(),
        };
        self.points.pass().await;
        let fate = self.points.fate();
        if fate == Fate::Lost {
            return Err(away());
        }
        let answer = call.await;
        self.points.pass().await;
        if fate == Fate::Unanswered { Err(away()) } else { answer }
    }

    fn conditional(&self) -> Result<&dyn ConditionalCheckpointStore, StoreError> {
        self.inner.conditional_checkpoints().ok_or_else(|| absent("compare-and-set of checkpoints"))
    }

    fn journal(&self) -> Result<&dyn InboxStore, StoreError> {
        self.inner.inbox().ok_or_else(|| absent("an inbox"))
    }
}

fn absent(what: &str) -> StoreError {
    let reason = format!("the store inside has no {what}");
    StoreError::Refused { store: "crashing", operation: "a call", reason }
}

#[async_trait]
impl Store for CrashingStore {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.inner.prepare().await
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        self.inner.conditional_checkpoints().map(|_| self as _)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        self.inner.locks()
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        self.inner.inbox().map(|_| self as _)
    }
}

#[async_trait]
impl DocumentStore for CrashingStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        self.points.live().await;
        self.inner.load_document(collection, key).await
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        self.call(self.inner.save_document_if(collection, key, body, expected)).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        self.call(self.inner.remove_document_if(collection, key, expected)).await
    }
}

#[async_trait]
impl CheckpointStore for CrashingStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.points.live().await;
        self.inner.load_checkpoint(key).await
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        self.call(self.inner.set_checkpoint(key, write, fence)).await
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        self.call(self.inner.clear_checkpoint(key)).await
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        self.points.live().await;
        self.inner.checkpoints_to_wake(horizon, limit).await
    }
}

#[async_trait]
impl ConditionalCheckpointStore for CrashingStore {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        self.call(self.conditional()?.adopt_checkpoint(key, fence)).await
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        self.call(self.conditional()?.set_checkpoint_if(key, write, expected, fence)).await
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        self.call(self.conditional()?.clear_checkpoint_if(key, expected, fence)).await
    }
}

#[async_trait]
impl InboxStore for CrashingStore {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        self.call(self.journal()?.admit(record)).await
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        self.call(self.journal()?.begin(chat, fence, lease)).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        self.call(self.journal()?.commit(commit)).await
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        self.call(self.journal()?.note_sends(chat, position, fence, sends)).await
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        self.call(self.journal()?.postpone(chat, position, fence, postponement)).await
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.call(self.journal()?.bury(chat, position, fence, error)).await
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        self.call(self.journal()?.release(chat, position)).await
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        // Not counted: how often it is asked is a matter of time.
        self.points.live().await;
        self.journal()?.take_waiting(provider, lease, limit).await
    }

    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.points.live().await;
        self.journal()?.dead_letters(after, limit).await
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        self.call(self.journal()?.revive(chat, position)).await
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        self.points.live().await;
        self.journal()?.forget(retention, limit).await
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.points.live().await;
        self.journal()?.dangers().await
    }
    /// Its own: a coordinator that took the steps of the store inside along would get around the
    /// crash points.
    fn realm(&self) -> Option<&Realm> {
        Some(&self.realm)
    }
}
