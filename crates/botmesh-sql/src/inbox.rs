//! The journal of what came in. Each call is one request, but for finding chats that wait, and
//! forgetting.

mod admit;
mod begin;
mod commit;
mod forget;
mod joined;
mod record;
mod schema;
mod steps;
mod wait;

use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::{Position, ProviderId};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, Commit, Committed, DeadLetter, InboxStore, NewRecord,
    Postponement, Realm, Retention, StoreError,
};
use botmesh_core::{ChatKey, Fence, Revision};

use crate::DriverError;
use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::error::Fault;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::{Row, Value};

pub use joined::Joined;
pub(crate) use schema::{MYSQL, POSTGRES, SQLITE};
pub use steps::Steps;

#[derive(Debug)]
pub(crate) struct Statements {
    admit: Statement,
    begin: Statement,
    commit: commit::Statements,
    record: record::Statements,
    wait: wait::Statements,
    forget: forget::Statements,
}

impl Statements {
    pub(crate) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        Self {
            admit: admit::statement(dialect, names),
            begin: begin::statement(dialect, names),
            commit: commit::Statements::new(dialect, names),
            record: record::Statements::new(dialect, names),
            wait: wait::statements(dialect, names),
            forget: forget::Statements::new(dialect, names),
        }
    }
}

/// How often a record is asked for that others end meanwhile.
const BEGINS: u32 = 100;

/// A position as a value; one that no record can have, if the number is none of ours.
fn place(position: Position) -> Value {
    Value::Integer(i64::try_from(position.get()).unwrap_or(-1))
}

fn amount(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn attempts(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(u32::MAX)
}

/// A stored key. One that nobody can have written must not hide all others.
fn chat(text: &str) -> Option<ChatKey> {
    let key = ChatKey::decode(text);
    key.inspect_err(|error| tracing::warn!(%error, "a stored record has no valid chat")).ok()
}

impl<D: Driver> SqlStore<D> {
    /// Changes a record, if it is as it has to be for that.
    async fn change_record(
        &self,
        operation: &'static str,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<bool, StoreError> {
        Ok(self.write_row(operation, statement, values).await?.is_some())
    }

    /// The values of an admission.
    fn admission(&self, record: &NewRecord<'_>) -> Result<Vec<Value>, StoreError> {
        let state = if record.body.is_some() { schema::PENDING } else { schema::CLAIMED };
        Ok(vec![
            record.chat.as_str().into(),
            record.message.map_or("", |message| message.as_str()).into(),
            match record.body {
                Some(body) => self.text("message", body)?,
                None => "".into(),
            },
            Value::micros(record.lease),
            amount(record.most),
            Value::Integer(state),
            record.chat.provider().into(),
        ])
    }

    /// The statement that ends a record so, and its values.
    fn ending<'a>(
        &self,
        statements: &'a commit::Statements,
        commit: &Commit<'_>,
    ) -> Result<(&'a Statement, Vec<Value>), StoreError> {
        let Commit { chat, position, fence, checkpoint } = *commit;
        Ok(match checkpoint {
            CheckpointChange::Nothing => {
                let values = vec![chat.as_str().into(), place(position), self.fence(fence)?];
                (&statements.end, values)
            }
            CheckpointChange::Set { write, expected } => {
                let mut values = self.write_values(chat, write, fence)?;
                values.extend(expected.map(Self::revision));
                values.push(place(position));
                let is_new = expected.is_none();
                (if is_new { &statements.create } else { &statements.replace }, values)
            }
            CheckpointChange::Clear { expected } => {
                let key = chat.as_str().into();
                let values =
                    vec![key, self.fence(fence)?, Self::revision(expected), place(position)];
                (&statements.clear, values)
            }
        })
    }

    async fn forget_some(
        &self,
        statement: &Statement,
        kept: Duration,
        limit: usize,
    ) -> Result<usize, StoreError> {
        const OPERATION: &str = "forget records";
        if limit == 0 {
            return Ok(0);
        }
        let values = vec![Value::micros(kept), amount(limit)];
        let row = self.write_row(OPERATION, statement, values).await?;
        let count = row.map_or(Ok(0), |mut row| row.integer()).map_err(self.named(OPERATION))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// What an end that was applied has told.
fn committed(row: &mut Row, commit: &Commit<'_>) -> Result<Committed, DriverError> {
    let is_set = matches!(commit.checkpoint, CheckpointChange::Set { .. });
    let revision = row.number()?;
    Ok(Committed::Applied(is_set.then(|| Revision::new(revision))))
}

#[async_trait]
impl<D: Driver> InboxStore for SqlStore<D> {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        const OPERATION: &str = "admit message";
        let values = self.admission(&record)?;
        let row = self.write_row(OPERATION, &self.inbox.admit, values).await?;
        let mut row = row.unwrap_or_else(|| Row::new(Vec::new()));
        admit::admission(&mut row).map_err(self.named(OPERATION))
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        const OPERATION: &str = "begin record";
        let values = vec![chat.as_str().into(), self.fence(fence)?, Value::micros(lease)];
        for _ in 0..BEGINS {
            let row = self.write_row(OPERATION, &self.inbox.begin, values.clone()).await?;
            let Some(row) = row else { return Ok(Begun::Nothing) };
            if let Some(begun) = begin::begun(row).map_err(self.named(OPERATION))? {
                return Ok(begun);
            }
        }
        let contended = "the first record was another one each time";
        Err(self.named(OPERATION)(DriverError::new(Fault::Busy(Duration::ZERO), contended)))
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        const OPERATION: &str = "commit record";
        let (statement, values) = self.ending(&self.inbox.commit, &commit)?;
        let Some(mut row) = self.write_row(OPERATION, statement, values).await? else {
            return Ok(Committed::Refused);
        };
        committed(&mut row, &commit).map_err(self.named(OPERATION))
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        let sends = self.text("note of sends", sends)?;
        let values = vec![chat.as_str().into(), place(position), self.fence(fence)?, sends];
        self.change_record("note sends", &self.inbox.record.note_sends, values).await
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        let Postponement { attempts, error, sends, retry_in } = postponement;
        let values = vec![
            chat.as_str().into(),
            place(position),
            self.fence(fence)?,
            Value::Integer(attempts.into()),
            self.text("error", error)?,
            Value::micros(retry_in),
            Value::Integer(sends.is_some().into()),
            self.text("note of sends", sends.unwrap_or_default())?,
        ];
        self.change_record("postpone record", &self.inbox.record.postpone, values).await
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        let error = self.text("error", error)?;
        let values = vec![chat.as_str().into(), place(position), self.fence(fence)?, error];
        self.change_record("bury record", &self.inbox.record.bury, values).await
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        let values = vec![chat.as_str().into(), place(position)];
        self.change_record("release record", &self.inbox.record.release, values).await.map(drop)
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        const OPERATION: &str = "find chats that wait";
        let named = self.named(OPERATION);
        let mut values = vec![Value::micros(lease), amount(limit), provider.as_str().into()];
        if let Some(moment) = &self.inbox.wait.moment {
            let Some(mut row) = self.read_row(OPERATION, moment, values.clone()).await? else {
                return Ok(Vec::new());
            };
            values.push(Value::Integer(row.integer().map_err(&named)?));
        }
        let rows = self.driver.write(&self.inbox.wait.take, values).await.map_err(&named)?;
        let mut chats = Vec::new();
        for mut row in rows {
            if let Some(key) = self::chat(&row.text().map_err(&named)?)
                && !chats.contains(&key)
            {
                chats.push(key);
            }
        }
        Ok(chats)
    }

    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let named = self.named("list dead letters");
        let (behind, position) = match after {
            Some((chat, position)) => (chat.as_str(), place(position)),
            None => ("", place(Position::new(0))),
        };
        let values = vec![behind.into(), position, amount(limit)];
        let rows = self.driver.read(&self.inbox.record.dead, values).await.map_err(&named)?;
        let letters = rows.into_iter().map(|mut row| record::dead_letter(&mut row));
        letters.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(&named)
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        let values = vec![chat.as_str().into(), place(position)];
        self.change_record("revive record", &self.inbox.record.revive, values).await
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        let statements = &self.inbox.forget;
        let mut forgotten = 0;
        for (statement, kept) in [
            (&statements.done, retention.done),
            (&statements.claims, Duration::ZERO),
            (&statements.dead, retention.dead),
        ] {
            forgotten += self.forget_some(statement, kept, limit - forgotten).await?;
        }
        Ok(forgotten)
    }

    fn realm(&self) -> Option<&Realm> {
        Some(&self.realm)
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.driver.dangers().await.map_err(self.named("look for dangers"))
    }
}
