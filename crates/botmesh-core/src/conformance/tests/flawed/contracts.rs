use std::time::Duration;

use async_trait::async_trait;

use super::{Data, Flaw, Flawed, Held, Row};
use crate::ChatKey;
use crate::id::{Fence, Revision};
use crate::store::{
    Adopted, CheckpointStore, CheckpointWrite, Collection, ConditionalCheckpointStore, Document,
    DocumentStore, FencedLock, InboxStore, LockStore, LockToken, Store, StoreError,
    StoredCheckpoint, Swap,
};

#[async_trait]
impl Store for Flawed {
    fn name(&self) -> &'static str {
        "flawed"
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_durable(&self) -> bool {
        !self.has(Flaw::KeepsCopies)
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        let mut data = self.data.lock();
        if data.prepared && self.has(Flaw::PreparesOnce) {
            let reason = "the table exists".to_owned();
            return Err(StoreError::Refused { store: "flawed", operation: "prepare", reason });
        }
        if self.has(Flaw::PreparesAnew) {
            *data = Data::default();
        }
        data.prepared = true;
        Ok(())
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        Some(self)
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        None
    }
}

#[async_trait]
impl DocumentStore for Flawed {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        Ok(self.data.lock().documents.get(&self.place(collection, key)).cloned())
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        let place = self.place(collection, key);
        let mut present = self.data.lock().documents.get(&place).map(|document| document.revision);
        self.pause_if(Flaw::LosesUpdates).await;
        let mut data = self.data.lock();
        if !self.has(Flaw::LosesUpdates) {
            present = data.documents.get(&place).map(|document| document.revision);
        }
        if present != expected && !self.has(Flaw::IgnoresRevisions) {
            return Ok(Swap::Refused);
        }
        let revision = self.next(&mut data, present);
        data.documents.insert(place, Document { revision, body: self.body(body) });
        Ok(Swap::Applied(revision))
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        let place = self.place(collection, key);
        let mut data = self.data.lock();
        if data.documents.get(&place).is_none_or(|document| document.revision != expected) {
            return Ok(Swap::Refused);
        }
        data.documents.remove(&place);
        Ok(Swap::Applied(self.next(&mut data, None)))
    }
}

#[async_trait]
impl CheckpointStore for Flawed {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        Ok(self.live(&self.data.lock(), key).map(|row| self.stored(row)))
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        let known = self.fence(&self.data.lock(), key);
        let known = known.filter(|_| !self.has(Flaw::LowersFences));
        Ok(self.put(key, Some(write), known.map_or(fence, |known| known.max(fence))))
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        let known = self.fence(&self.data.lock(), key);
        if let Some(known) = known {
            self.put(key, None, known);
        }
        Ok(())
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        let data = self.data.lock();
        let live = data.rows.values().filter_map(|row| self.live(&data, &row.key));
        let waking = live.filter_map(|row| Some((self.left(row.wake_at?), row.key)));
        let mut found: Vec<_> = waking.filter(|(left, _)| *left <= horizon).collect();
        if !self.has(Flaw::WakesInAnyOrder) {
            found.sort();
        }
        found.truncate(limit);
        Ok(found.into_iter().map(|(left, key)| (key, left)).collect())
    }
}

#[async_trait]
impl ConditionalCheckpointStore for Flawed {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        let looked = self.live(&self.data.lock(), key);
        self.pause_if(Flaw::AdoptsInTwoSteps).await;
        let (live, previous_fence) = {
            let data = self.data.lock();
            (self.live(&data, key), self.fence(&data, key))
        };
        let known = previous_fence.filter(|_| !self.has(Flaw::LowersFences));
        let mut raised = known.map_or(fence, |known| known.max(fence));
        if self.has(Flaw::AdoptsWithoutRaising) {
            raised = previous_fence.unwrap_or(Fence::new(0));
        }
        if live.is_none() {
            self.put(key, None, raised);
        } else if let Some(row) = self.data.lock().rows.get_mut(&self.key(key.as_str())) {
            row.fence = raised;
        }
        let shown = if self.has(Flaw::AdoptsInTwoSteps) { looked } else { live };
        let shown = shown.map(|row| self.stored(Row { fence: raised, ..row }));
        Ok(Adopted { checkpoint: shown, previous_fence })
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        if !self.is_met(key, expected, fence) {
            return Ok(Swap::Refused);
        }
        self.pause_if(Flaw::LosesUpdates).await;
        Ok(Swap::Applied(self.put(key, Some(write), fence)))
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        if !self.is_met(key, Some(expected), fence) {
            return Ok(Swap::Refused);
        }
        Ok(Swap::Applied(self.put(key, None, fence)))
    }
}

#[async_trait]
impl LockStore for Flawed {
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError> {
        let key = self.key(key);
        let held = |data: &Data| data.locks.get(&key).is_some_and(|held| held.ends_at > self.now());
        if held(&self.data.lock()) {
            return Ok(None);
        }
        self.pause_if(Flaw::GivesLocksTwice).await;
        let mut data = self.data.lock();
        data.last += 1;
        let counted = data.locks.get(&key).map_or(1, |held| held.fence + 1);
        let fence = if self.has(Flaw::RestartsFences) { counted } else { data.last };
        let token = LockToken::random();
        let held = Held { token: token.clone(), fence, ends_at: self.end(ttl) };
        data.locks.insert(key, held);
        Ok(Some(FencedLock { token, fence: Fence::new(fence) }))
    }

    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let (now, ends_at) = (self.now(), self.end(ttl));
        let mut data = self.data.lock();
        let Some(held) = data.locks.get_mut(&self.key(key)) else { return Ok(false) };
        let expired = held.ends_at <= now && !self.has(Flaw::RenewsExpired);
        if expired || (held.token != *token && !self.has(Flaw::RenewsForAnyone)) {
            return Ok(false);
        }
        if !self.has(Flaw::RenewsNothing) {
            held.ends_at = ends_at;
        }
        Ok(true)
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        let mut data = self.data.lock();
        let key = self.key(key);
        let Some(held) = data.locks.get(&key).filter(|held| held.ends_at > self.now()) else {
            return Ok(false);
        };
        if held.token != *token && !self.has(Flaw::ReleasesForAnyone) {
            return Ok(false);
        }
        data.locks.remove(&key);
        Ok(true)
    }
}
