//! The journal of what came in. The inbox of a chat is in the row of its checkpoint, so that each
//! step is one change of one document, whatever else it changes.
//!
//! `records` are those that have not ended, and the dead letters, in the order of their positions;
//! `done` are the messages that are. What is looked for across chats stands beside them, with an
//! index each: when the first lease ends, the first claim, the first end, the first burial.

mod admission;
mod attempt;
mod ending;
mod letters;
mod part;
mod retention;
mod waiting;

use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Position, ProviderId};
use botmesh_core::store::{
    Admission, Begun, Commit, Committed, DeadLetter, InboxStore, NewRecord, Postponement,
    Retention, Store as _, StoreError,
};
use mongodb::bson::Document;

use crate::failure::corrupt;
use crate::store::MongoStore;
use crate::{row, schema};

const WHAT: &str = "a record";
const ROWS: &str = schema::CHECKPOINTS;

#[async_trait]
impl InboxStore for MongoStore {
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
        self.note(chat, position, fence, sends).await
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        self.put_off(chat, position, fence, postponement).await
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.give_up(chat, position, fence, error).await
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        self.end_lease(chat, position).await
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
        self.make_pending(chat, position).await
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        self.forget_records(retention, limit).await
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.examine().await?;
        Ok(match self.is_durable() {
            true => Vec::new(),
            false => vec![
                "the server keeps its data in memory (storage engine inMemory): whatever was \
                 accepted is gone when it ends"
                    .to_owned(),
            ],
        })
    }
}

/// A position as it is stored; one that no record has, if the number is none of ours.
fn stored(position: Position) -> i64 {
    i64::try_from(position.get()).unwrap_or(-1)
}

fn position(record: &Document) -> Result<Position, StoreError> {
    row::number(record, WHAT, "position").map(Position::new)
}

/// How often a record was begun.
fn attempts(record: &Document) -> Result<u32, StoreError> {
    Ok(u32::try_from(row::number(record, WHAT, "attempts")?).unwrap_or(u32::MAX))
}

fn chat(row: &mut Document) -> Result<ChatKey, StoreError> {
    let id = row::take_text(row, WHAT, "_id")?.unwrap_or_default();
    ChatKey::decode(&id).map_err(|error| corrupt("a chat", error.to_string()))
}

/// The first of the records that a row was asked for.
fn take_record(row: &mut Document) -> Result<Option<Document>, StoreError> {
    match row.remove("records") {
        None => Ok(None),
        Some(mongodb::bson::Bson::Array(mut records)) => match records.drain(..).next() {
            None => Ok(None),
            Some(mongodb::bson::Bson::Document(record)) => Ok(Some(record)),
            Some(_) => Err(corrupt(WHAT, "it is no document")),
        },
        Some(_) => Err(corrupt("an inbox", "its records are no list")),
    }
}
