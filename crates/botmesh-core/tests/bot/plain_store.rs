//! A store of a user's own, without compare-and-set for checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::bot::Coordination;
use botmesh_core::prelude::*;
use botmesh_core::store::{
    CheckpointStore, CheckpointWrite, Collection, ConditionalCheckpointStore, Document,
    DocumentStore, InboxStore, LockStore, MemoryStore, Store, StoreError, StoredCheckpoint, Swap,
};
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator, TestProvider};
use botmesh_core::{ChatKey, Fence, Revision, flow};

/// The second part is how many of the next reads fail.
#[derive(Debug, Clone)]
struct PlainStore(MemoryStore, Arc<AtomicU32>);

impl PlainStore {
    fn new() -> Self {
        Self(MemoryStore::new(), Arc::default())
    }
}

#[async_trait]
impl DocumentStore for PlainStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        self.0.load_document(collection, key).await
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        self.0.save_document_if(collection, key, body, expected).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        self.0.remove_document_if(collection, key, expected).await
    }
}

#[async_trait]
impl CheckpointStore for PlainStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        let fails = |left: u32| left.checked_sub(1);
        if self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            let (store, operation) = ("plain", "read a checkpoint");
            return Err(StoreError::Unavailable { store, operation, source: "a test".into() });
        }
        self.0.load_checkpoint(key).await
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        self.0.set_checkpoint(key, write, fence).await
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        self.0.clear_checkpoint(key).await
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        self.0.checkpoints_to_wake(horizon, limit).await
    }
}

#[async_trait]
impl Store for PlainStore {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        false
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        None
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        None
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        None
    }
}

/// D8: a store without compare-and-set keeps only the local fence, and the bot warns at start.
#[tokio::test]
async fn a_store_without_compare_and_set_is_a_warning() {
    let hub = MemoryCoordinationHub::new();
    let coordinator = MemoryCoordinator::builder(&hub).build();
    let built = Bot::new(TestProvider::new())
        .store(PlainStore::new())
        .coordination(Coordination::new(coordinator))
        .build()
        .unwrap();
    let warning = built.warnings()[0].to_string();
    assert!(warning.contains("the store plain has no compare-and-set"), "{warning}");
}

/// D8, A7: with such a store a persistent flow goes on after a restart all the same.
#[tokio::test(start_paused = true)]
async fn a_persistent_flow_survives_on_a_store_without_compare_and_set() {
    let store = PlainStore::new();
    let platform = TestProvider::new();
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    for (said, heard) in [("go", "one?"), ("1", "two?"), ("2", "thanks")] {
        let running = Bot::new(platform.clone())
            .store(store.clone())
            .flow(
                flow::<()>("two")
                    .enter_on("go")
                    .ask("one?", |_, _| Ok(()))
                    .ask("two?", |_, _| Ok(()))
                    .say(|_| "thanks")
                    .persistent(),
            )
            .start()
            .await
            .unwrap();
        platform.says(&chat, said).await.unwrap();
        assert_eq!(hears.next_message().await.text, heard);
        running.stop().await;
    }
}

/// A7: a stored conversation whose time came while the store was away goes on soon after.
#[tokio::test(start_paused = true)]
async fn a_pause_whose_end_met_a_store_that_was_away_ends_soon_after() {
    let store = PlainStore::new();
    let platform = TestProvider::new();
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    let start = || {
        Bot::new(platform.clone())
            .store(store.clone())
            .flow(
                flow::<()>("rest")
                    .enter_on("go")
                    .say(|_| "one moment")
                    .resume_after(Duration::from_secs(60))
                    .say(|_| "thanks")
                    .persistent(),
            )
            .start()
    };
    let running = start().await.unwrap();
    platform.says(&chat, "go").await.unwrap();
    assert_eq!(hears.next_message().await.text, "one moment");
    running.stop().await;
    let _running = start().await.unwrap();
    store.1.store(3, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(hears.try_next().is_none());
    let heard = tokio::time::timeout(Duration::from_secs(20), hears.next_message()).await;
    assert_eq!(heard.unwrap().text, "thanks");
}
