use std::time::Duration;

use async_trait::async_trait;

use super::{ChatKey, Fence, MemoryStore, StoreError, after};
use crate::id::{Position, ProviderId};
use crate::store::{
    Admission, Begun, Commit, Committed, DeadLetter, InboxStore, NewRecord, Postponement, Realm,
    Retention,
};

#[async_trait]
impl InboxStore for MemoryStore {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        let now = self.now();
        Ok(self.data.inbox.lock(record.chat.as_str()).admit(record, now))
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        let now = self.now();
        Ok(self.data.inbox.lock(chat.as_str()).begin(chat, fence, after(now, lease), now))
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let now = self.now();
        let key = commit.chat.as_str();
        // Always in this order, and nobody else takes both.
        let mut inbox = self.data.inbox.lock(key);
        let mut checkpoints = self.data.checkpoints.lock(key);
        Ok(inbox.commit(commit, &mut checkpoints, now))
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        let place = (chat.clone(), position);
        Ok(self.data.inbox.lock(chat.as_str()).note_sends(&place, fence, sends))
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        let (now, place) = (self.now(), (chat.clone(), position));
        Ok(self.data.inbox.lock(chat.as_str()).postpone(&place, fence, postponement, now))
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        let (now, place) = (self.now(), (chat.clone(), position));
        Ok(self.data.inbox.lock(chat.as_str()).bury(&place, fence, error, now))
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        let (now, place) = (self.now(), (chat.clone(), position));
        self.data.inbox.lock(chat.as_str()).release(&place, now);
        Ok(())
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        let now = self.now();
        let mut found = Vec::new();
        for shard in self.data.inbox.iter() {
            shard.lock().waiting(now, &mut found);
        }
        found.sort_unstable();
        let mut chats: Vec<ChatKey> = Vec::new();
        for (_, chat) in found {
            let is_meant = chat.provider() == provider.as_str() && !chats.contains(&chat);
            if is_meant && chats.len() < limit {
                chats.push(chat);
            }
        }
        for chat in &chats {
            self.data.inbox.lock(chat.as_str()).lease_again(chat, after(now, lease), now);
        }
        Ok(chats)
    }

    async fn dead_letters(
        &self,
        behind: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let now = self.now();
        let mut found = Vec::new();
        for shard in self.data.inbox.iter() {
            shard.lock().dead_letters(now, &mut found);
        }
        let place = |letter: &DeadLetter| (letter.chat.clone(), letter.position);
        found.sort_by_key(place);
        let is_behind = |letter: &DeadLetter| {
            behind.is_none_or(|(chat, position)| (&letter.chat, letter.position) > (chat, position))
        };
        Ok(found.into_iter().filter(is_behind).take(limit).collect())
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        let (now, place) = (self.now(), (chat.clone(), position));
        Ok(self.data.inbox.lock(chat.as_str()).revive(&place, now))
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        let now = self.now();
        let mut forgotten = 0;
        for shard in self.data.inbox.iter() {
            forgotten += shard.lock().forget(retention, limit - forgotten, now);
        }
        Ok(forgotten)
    }
    fn realm(&self) -> Option<&Realm> {
        Some(&self.data.realm)
    }
}
