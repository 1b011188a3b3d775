//! Turns that take the steps of the store's inbox along: one script before a message and one after
//! it.

use async_trait::async_trait;
use botmesh_core::coordination::client::{Arrival, BackendError, Departure, JournalBackend};
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::store::{CheckpointChange, Commit, Committed, NewRecord, Realm, StoreError};
use redis::Value;

use super::backend::RedisBackend;
use super::scripts::{COMMIT, COMMIT_CLEAR, COMMIT_SET, INGEST};
use super::wire::decode;
use crate::error::corrupt;
use crate::inbox::admission::{admission, read_admission};
use crate::inbox::ending::{ending, read_committed};
use crate::reply;

const ARRIVAL: &str = "what became of a message";
const DEPARTURE: &str = "what became of a record";

#[async_trait]
impl JournalBackend for RedisBackend {
    fn realm(&self) -> &Realm {
        self.store.own_realm()
    }

    async fn ingest(
        &self,
        record: NewRecord<'_>,
        reserve: &Operation,
    ) -> Result<Arrival, BackendError> {
        let own = admission(&self.space, &self.store.request(), &record);
        let answer = self.execute_with(reserve, &INGEST, own).await?;
        read_arrival(answer).map_err(unreadable)
    }

    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError> {
        let script = match commit.checkpoint {
            CheckpointChange::Nothing => &COMMIT,
            CheckpointChange::Set { .. } => &COMMIT_SET,
            CheckpointChange::Clear { .. } => &COMMIT_CLEAR,
        };
        let own = ending(&self.space, &self.store.request(), &commit);
        let answer = self.execute_with(release, script, own).await?;
        read_departure(answer, &commit).map_err(unreadable)
    }
}

fn unreadable(error: StoreError) -> BackendError {
    BackendError::Unknown(Box::new(error))
}

fn read_arrival(answer: Value) -> Result<Arrival, StoreError> {
    let Value::Array(parts) = answer else { return Err(corrupt(ARRIVAL, "it is no list")) };
    let mut parts = parts.into_iter();
    let admission = read_admission(parts.next().unwrap_or(Value::Nil))?;
    let reply = parts.next().map(decode).transpose()?;
    let is_begun = parts.next().map(|begun| reply::flag(begun, ARRIVAL)).transpose()?;
    let is_begun = is_begun.unwrap_or_default() && matches!(reply, Some(Reply::Granted(_)));
    Ok(Arrival { admission, reply, is_begun })
}

fn read_departure(answer: Value, commit: &Commit<'_>) -> Result<Departure, StoreError> {
    let Value::Array(parts) = answer else { return Err(corrupt(DEPARTURE, "it is no list")) };
    let mut parts = parts.into_iter();
    let committed = read_committed(parts.next().unwrap_or(Value::Nil), commit)?;
    let reply = match committed {
        Committed::Applied(_) => parts.next().map(decode).transpose()?,
        Committed::Refused => None,
    };
    Ok(Departure { committed, reply })
}
