//! A store that is slow, fails, or loses its answer, and remembers what it accepted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::{ChatKey, Fence, Revision};
use botmesh_core::store::{
    Adopted, CheckpointStore, CheckpointWrite, Collection, ConditionalCheckpointStore, Document,
    DocumentStore, InboxStore, LockStore, MemoryStore, Store, StoreError, StoredCheckpoint, Swap,
};

use crate::plan::Mutant;
use crate::replica::Replica;

#[derive(Debug, Clone)]
pub struct FaultyStore {
    pub inner: MemoryStore,
    pub replica: Arc<Replica>,
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy)]
struct Fate {
    before: Duration,
    fails: bool,
    loses: bool,
}

impl FaultyStore {
    fn fate(&self, key: &ChatKey) -> Fate {
        let plan = &self.replica.plan;
        let mut dice = self.replica.dice.lock();
        let mut fate = Fate { before: dice.millis(0, 15), fails: false, loses: false };
        if !self.replica.is_healed() {
            fate.fails = dice.happens(plan.store_fails);
            fate.loses = dice.happens(plan.store_loses);
            if dice.happens(plan.store_slow) {
                fate.before = dice.millis(1_000, 25_000);
            }
        }
        drop(dice);
        if fate.fails || fate.loses || fate.before.as_secs() > 0 {
            self.replica.history.note(format!("{} {key} store: {fate:?}", self.replica.number));
            self.replica.history.disturb(Some(key), fate.before + Duration::from_secs(5));
        }
        fate
    }

    /// A call that is on its way reaches the store even when its caller is gone.
    async fn call<T: Send + 'static>(
        &self,
        key: &ChatKey,
        apply: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let unanswered = || StoreError::Unavailable {
            store: "faulty",
            operation: "a checkpoint",
            source: "the simulation".into(),
        };
        let fate = self.fate(key);
        self.replica.crash_in_call(false).await;
        let applied = tokio::spawn(async move {
            tokio::time::sleep(fate.before).await;
            if fate.fails { None } else { Some(apply.await) }
        });
        let applied = applied.await.ok().flatten();
        self.replica.crash_in_call(true).await;
        match applied {
            Some(applied) if !fate.loses => applied,
            _ => Err(unanswered()),
        }
    }

    fn ignores_fences(&self) -> bool {
        self.replica.plan.mutant == Some(Mutant::StoreIgnoresFences)
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.inner.prepare().await
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        self.inner.locks()
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        self.inner.inbox()
    }
}

#[async_trait]
impl DocumentStore for FaultyStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        self.inner.load_document(collection, key).await
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        self.inner.save_document_if(collection, key, body, expected).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        self.inner.remove_document_if(collection, key, expected).await
    }
}

#[async_trait]
impl CheckpointStore for FaultyStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        let (store, chat) = (self.inner.clone(), key.clone());
        self.call(key, async move { store.load_checkpoint(&chat).await }).await
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        _: CheckpointWrite<'_>,
        _: Fence,
    ) -> Result<Revision, StoreError> {
        unreachable!("{key} was written without a condition")
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        unreachable!("{key} was cleared without a condition")
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        self.inner.checkpoints_to_wake(horizon, limit).await
    }
}

#[async_trait]
impl ConditionalCheckpointStore for FaultyStore {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        self.replica.history.acts(self.replica.number, key, "adopts", Some(fence));
        let (store, chat, ignores) = (self.clone(), key.clone(), self.ignores_fences());
        self.call(key, async move {
            if ignores {
                let checkpoint = store.inner.load_checkpoint(&chat).await?;
                store.replica.history.adopted(&chat, fence);
                return Ok(Adopted { checkpoint, previous_fence: None });
            }
            let adopted = store.inner.adopt_checkpoint(&chat, fence).await?;
            store.replica.history.adopted(&chat, fence);
            Ok(adopted)
        })
        .await
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        self.replica.history.acts(self.replica.number, key, "writes its checkpoint", Some(fence));
        let (store, chat, ignores) = (self.clone(), key.clone(), self.ignores_fences());
        let (body, wake_in, expires_in) = (write.body.to_owned(), write.wake_in, write.expires_in);
        self.call(key, async move {
            let write = CheckpointWrite { body: &body, wake_in, expires_in };
            let swap = if ignores {
                Swap::Applied(store.inner.set_checkpoint(&chat, write, fence).await?)
            } else {
                store.inner.set_checkpoint_if(&chat, write, expected, fence).await?
            };
            store.record(&chat, fence, expected, swap, false, expires_in);
            Ok(swap)
        })
        .await
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        self.replica.history.acts(self.replica.number, key, "clears its checkpoint", Some(fence));
        let (store, chat) = (self.clone(), key.clone());
        self.call(key, async move {
            let swap = store.inner.clear_checkpoint_if(&chat, expected, fence).await?;
            store.record(&chat, fence, Some(expected), swap, true, None);
            Ok(swap)
        })
        .await
    }
}

impl FaultyStore {
    fn record(
        &self,
        chat: &ChatKey,
        fence: Fence,
        expected: Option<Revision>,
        swap: Swap,
        clears: bool,
        expires_in: Option<Duration>,
    ) {
        match swap {
            Swap::Applied(revision) => {
                let now = (!clears).then_some(revision);
                self.replica.history.written(chat, fence, expected, now, expires_in);
            }
            Swap::Refused => self.replica.history.refused(chat, fence),
        }
    }
}
