//! The inbox of the store, of which the steps that each message takes go together when several are
//! ready at the same moment.

pub(crate) mod change;
pub(crate) mod schema;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::{Position, ProviderId};
use botmesh_core::store::{
    Admission, Begun, Commit, Committed, DeadLetter, InboxStore, NewRecord, Postponement, Realm,
    Retention, StoreError,
};
use botmesh_core::{ChatKey, Fence};
use botmesh_sql::{Dialect, DriverError, Joined, Row, SqlStore, Value};
use tokio::runtime::Handle;

use crate::driver::{NAME, PostgresDriver};
use crate::failure::Failure;
use crate::group::{Group, Sending};

const ADMIT: &str = "SELECT admitted, known, place, waiting
    FROM {p}inbox_admit({1}, NULLIF({2}, ''), {3}, {4}, {5}, {6}, {7})";
const ADMIT_SEVERAL: &str = "SELECT admitted, known, place, waiting
    FROM {p}inbox_admit_several({1}, {2}, {3}, {4}, {5}, {6}, {7})";
const BEGIN: &str = "SELECT begun, higher, due_in, place, attempts, body, sends, error, more
    FROM {p}inbox_begin({1}, {2}, {3})";
const BEGIN_SEVERAL: &str =
    "SELECT begun, higher, due_in, place, attempts, body, sends, error, more
    FROM {p}inbox_begin_several({1}, {2}, {3})";
const COMMIT: &str = "SELECT {p}inbox_commit({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8})";
const COMMIT_SEVERAL: &str =
    "SELECT written FROM {p}inbox_commit_several({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8})";

/// How often a record is asked for that others end meanwhile.
const BEGINS: u32 = 100;

/// The inbox of one store.
#[derive(Debug)]
pub(crate) struct PostgresInbox {
    sql: Arc<SqlStore<PostgresDriver>>,
    admit: Group,
    begin: Group,
    commit: Group,
}

impl PostgresInbox {
    pub(crate) fn new(sql: Arc<SqlStore<PostgresDriver>>) -> Self {
        let group = |alone: &str, together: &str| {
            let render = |template: &str| Dialect::POSTGRES.statement(template, sql.prefix());
            let (alone, together) = (render(alone), render(together));
            Group::new(sql.driver().clone(), Sending { alone, together, is_patient: true })
        };
        let (admit, begin) = (group(ADMIT, ADMIT_SEVERAL), group(BEGIN, BEGIN_SEVERAL));
        let commit = group(COMMIT, COMMIT_SEVERAL);
        Self { sql, admit, begin, commit }
    }

    async fn send<T>(
        &self,
        operation: &'static str,
        group: &Group,
        values: Vec<Value>,
        read: impl FnOnce(Row) -> Result<T, DriverError>,
    ) -> Result<T, StoreError> {
        let answer = group.send(values, &Handle::current()).await;
        self.sql.sweep_now_and_then().await;
        let read = answer.map_err(Failure::into_error).and_then(read);
        read.map_err(|error| error.into_store_error(NAME, operation))
    }
}

#[async_trait]
impl InboxStore for PostgresInbox {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        let values = Joined::admission(&self.sql, &record)?;
        let read = |mut row| Joined::admitted(&mut row);
        self.send("admit message", &self.admit, values, read).await
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        const OPERATION: &str = "begin record";
        let values = vec![chat.as_str().into(), self.sql.fence(fence)?, Some(lease).into()];
        for _ in 0..BEGINS {
            let begun = self.send(OPERATION, &self.begin, values.clone(), Joined::begun).await?;
            if let Some(begun) = begun {
                return Ok(begun);
            }
        }
        let waited = Duration::ZERO;
        Err(StoreError::Busy { store: NAME, operation: OPERATION, waited })
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let values = change::values(&self.sql, &commit)?;
        let read = |mut row| change::committed(&mut row, &commit);
        self.send("commit record", &self.commit, values, read).await
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        self.sql.note_sends(chat, position, fence, sends).await
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        self.sql.postpone(chat, position, fence, postponement).await
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        self.sql.bury(chat, position, fence, error).await
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        InboxStore::release(&*self.sql, chat, position).await
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        self.sql.take_waiting(provider, lease, limit).await
    }

    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.sql.dead_letters(after, limit).await
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        self.sql.revive(chat, position).await
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        self.sql.forget(retention, limit).await
    }

    fn realm(&self) -> Option<&Realm> {
        Some(self.sql.realm())
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.sql.dangers().await
    }
}
