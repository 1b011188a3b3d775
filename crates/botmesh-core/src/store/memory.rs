//! The store that a bot has when it names none.

mod checkpoints;
mod documents;
mod inbox;
mod journal;
mod locks;
mod sharded;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use self::checkpoints::Checkpoints;
use self::documents::Documents;
use self::inbox::Inbox;
use self::locks::Locks;
use self::sharded::Sharded;
use super::{
    Adopted, CheckpointStore, CheckpointWrite, Collection, ConditionalCheckpointStore, Document,
    DocumentStore, FencedLock, InboxStore, LockStore, LockToken, Realm, Store, StoreError,
    StoredCheckpoint, Swap,
};
use crate::id::{ChatKey, Fence, Revision};
use crate::time::Clock;

/// A store in this process's memory: the default, and what tests use.
///
/// Clones share the same data. Time is tokio's clock, so a test that pauses it decides when rows
/// and locks expire. What has expired is removed bit by bit by later writes, without a task in
/// the background.
///
/// ```
/// use botmesh_core::store::{Collection, DocumentStore, MemoryStore, Swap};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), botmesh_core::store::StoreError> {
/// let store = MemoryStore::new();
/// let same = store.clone();
/// let saved = store.save_document_if(Collection::Users, "telegram:42", "{}", None).await?;
/// assert!(matches!(saved, Swap::Applied(_)));
/// let read = same.load_document(Collection::Users, "telegram:42").await?;
/// assert_eq!(read.map(|document| document.body), Some("{}".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    data: Arc<Data>,
    shared: bool,
}

struct Data {
    clock: Clock,
    documents: Sharded<Documents>,
    checkpoints: Sharded<Checkpoints>,
    locks: Sharded<Locks>,
    inbox: Sharded<Inbox>,
    realm: Realm,
}

/// A moment of the store's clock, in microseconds.
type Moment = u64;

/// The moment that never comes.
const NEVER: Moment = Moment::MAX;

fn after(now: Moment, time: Duration) -> Moment {
    now.saturating_add(u64::try_from(time.as_micros()).unwrap_or(NEVER))
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let clock = Clock::following_tokio(SystemTime::now().into());
        let data = Data {
            clock,
            documents: Sharded::default(),
            checkpoints: Sharded::default(),
            locks: Sharded::default(),
            inbox: Sharded::default(),
            realm: Realm::new(),
        };
        Self { data: Arc::new(data), shared: false }
    }

    /// Passes for a store that several processes share, as the replicas of a test do that run in
    /// one process.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn as_shared(mut self) -> Self {
        self.shared = true;
        self
    }

    fn now(&self) -> Moment {
        self.data.clock.now_micros()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        Some(self)
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(self)
    }
}

#[async_trait]
impl DocumentStore for MemoryStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        Ok(self.data.documents.lock(key).load(collection, key))
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        let now = self.now();
        Ok(self.data.documents.lock(key).save_if(collection, key, body, expected, now))
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        let now = self.now();
        Ok(self.data.documents.lock(key).remove_if(collection, key, expected, now))
    }
}

#[async_trait]
impl CheckpointStore for MemoryStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        let now = self.now();
        Ok(self.data.checkpoints.lock(key.as_str()).load(key, now))
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        let now = self.now();
        Ok(self.data.checkpoints.lock(key.as_str()).set(key, write, fence, now))
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        let now = self.now();
        self.data.checkpoints.lock(key.as_str()).clear(key, now);
        Ok(())
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        let now = self.now();
        let mut found = Vec::new();
        for shard in self.data.checkpoints.iter() {
            shard.lock().to_wake(after(now, horizon), now, limit, &mut found);
        }
        found.sort_unstable();
        found.truncate(limit);
        let left = |moment: Moment| Duration::from_micros(moment.saturating_sub(now));
        Ok(found.into_iter().map(|(moment, key)| (key, left(moment))).collect())
    }
}

#[async_trait]
impl ConditionalCheckpointStore for MemoryStore {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        let now = self.now();
        Ok(self.data.checkpoints.lock(key.as_str()).adopt(key, fence, now))
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let now = self.now();
        Ok(self.data.checkpoints.lock(key.as_str()).set_if(key, write, expected, fence, now))
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let now = self.now();
        Ok(self.data.checkpoints.lock(key.as_str()).clear_if(key, expected, fence, now))
    }
}

#[async_trait]
impl LockStore for MemoryStore {
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError> {
        let now = self.now();
        Ok(self.data.locks.lock(key).acquire(key, after(now, ttl), now))
    }

    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.data.locks.lock(key).renew(key, token, after(now, ttl), now))
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        let now = self.now();
        Ok(self.data.locks.lock(key).release(key, token, now))
    }
}
