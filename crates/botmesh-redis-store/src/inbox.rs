//! The journal of what came in. All that a step touches is in one slot, so each is one script.

pub(crate) mod admission;
mod dangers;
pub(crate) mod ending;
mod letters;
mod retention;
mod waiting;

use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Position, ProviderId};
use botmesh_core::store::{
    Admission, Begun, Commit, Committed, DeadLetter, InboxStore, NewRecord, Postponement, Realm,
    Retention, StoreError,
};

use redis::Value;

use crate::error::corrupt;
use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

#[async_trait]
impl InboxStore for RedisStore {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        self.admit_record(record).await
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        self.begin_record(chat, fence, lease).await
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        self.commit_record(commit).await
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        let keys = self.space().inbox(chat);
        let open = Open::new(self, chat, position, fence);
        let arguments = open.arguments([sends.as_bytes()]);
        let script = &script::INBOX_NOTE;
        let keys = [keys.records.as_str()];
        let answer = self.call("noting sends", Repeat::Freely, script, &keys, &arguments).await?;
        reply::flag(answer, "the outcome of a note")
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        let keys = self.space().inbox(chat);
        let open = Open::new(self, chat, position, fence);
        let attempts = postponement.attempts.to_string();
        let retry_in = argument::time(postponement.retry_in);
        let mut arguments = open.arguments([
            attempts.as_bytes(),
            postponement.error.as_bytes(),
            retry_in.as_bytes(),
        ]);
        arguments.extend(postponement.sends.map(str::as_bytes));
        let keys = [keys.records.as_str(), keys.leases.as_str()];
        let script = &script::INBOX_POSTPONE;
        let operation = "postponing a record";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        reply::flag(answer, "the outcome of a postponement")
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        let keys = self.space().inbox(chat);
        let open = Open::new(self, chat, position, fence);
        let arguments = open.arguments([error.as_bytes()]);
        let (dead, buried) = (keys.shared.dead.as_str(), keys.shared.buried.as_str());
        let keys = [&*keys.records, &*keys.pending, &*keys.leases, dead, buried];
        let script = &script::INBOX_BURY;
        let operation = "giving a record up";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        reply::flag(answer, "the outcome of a burial")
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        let keys = self.space().inbox(chat);
        let position = position.to_string();
        let arguments = [chat.as_str().as_bytes(), position.as_bytes()];
        let keys = [&*keys.records, &*keys.leases, &*keys.shared.claims];
        let script = &script::INBOX_RELEASE;
        let operation = "releasing a record";
        self.call(operation, Repeat::Freely, script, &keys, &arguments).await.map(drop)
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        self.take_waiting_chats(provider, lease, limit).await
    }

    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.read_dead_letters(after, limit).await
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        let keys = self.space().inbox(chat);
        let (position, request) = (position.to_string(), self.request());
        let arguments = [chat.as_str().as_bytes(), position.as_bytes(), request.as_bytes()];
        let (dead, buried) = (keys.shared.dead.as_str(), keys.shared.buried.as_str());
        let keys = [&*keys.records, &*keys.pending, &*keys.leases, dead, buried];
        let script = &script::INBOX_REVIVE;
        let operation = "reviving a dead letter";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        reply::flag(answer, "the outcome of a revival")
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        self.forget_records(retention, limit).await
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.find_dangers().await
    }

    fn realm(&self) -> Option<&Realm> {
        Some(self.own_realm())
    }
}

/// What the scripts need that act on a record which is open.
struct Open<'a> {
    chat: &'a ChatKey,
    position: String,
    fence: String,
    request: String,
}

impl<'a> Open<'a> {
    fn new(store: &RedisStore, chat: &'a ChatKey, position: Position, fence: Fence) -> Self {
        let (fence, request) = (argument::fence(fence), store.request());
        Self { chat, position: position.to_string(), fence, request }
    }

    fn arguments<'b, const N: usize>(&'b self, further: [&'b [u8]; N]) -> Vec<&'b [u8]> {
        let chat = self.chat.as_str();
        let mut arguments: Vec<&[u8]> = Vec::with_capacity(5 + N);
        let own = [chat, &self.position, &self.fence, &self.request];
        arguments.extend(own.map(str::as_bytes));
        arguments.extend(further);
        arguments
    }
}

fn chat(text: &str) -> Result<ChatKey, StoreError> {
    ChatKey::decode(text).map_err(|error| corrupt("a chat", error.to_string()))
}

fn count(value: Value, what: &'static str) -> Result<usize, StoreError> {
    Ok(usize::try_from(reply::number(value, what)?).unwrap_or(usize::MAX))
}

/// How often a record was begun.
fn attempts(value: Value) -> Result<u32, StoreError> {
    Ok(u32::try_from(reply::number(value, "a count of attempts")?).unwrap_or(u32::MAX))
}
