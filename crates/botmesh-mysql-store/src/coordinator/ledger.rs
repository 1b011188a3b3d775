use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::stored::{Change, LedgerStore, Snapshot};
use botmesh_core::coordination::transition::{Limits, Operation, Outcome, Reply, TicketId};
use botmesh_sql::{DriverError, Row, Statement, Value};

use super::rows;
use super::schema::Statements;
use crate::driver::MysqlDriver;
use crate::failure::Failure;
use crate::protocol::Told;

/// How many keys that nobody remembers are removed at a time, and how often in one go.
const BATCH: u64 = 1_000;
const BATCHES: u32 = 20;

/// The rows of a coordinator.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    driver: MysqlDriver,
    statements: Arc<Statements>,
    /// How long an answer may take before its connection counts as broken.
    response: Duration,
    /// Whether it has worked before: then what is refused now may pass.
    has_worked: Arc<AtomicBool>,
    /// Whether sessions end with the run of the server.
    ends_sessions: bool,
}

impl Rows {
    pub(super) fn new(driver: MysqlDriver, statements: Statements, response: Duration) -> Self {
        let (statements, has_worked) = (Arc::new(statements), Arc::default());
        Self { driver, statements, response, has_worked, ends_sessions: true }
    }

    /// As if a server that was restarted remembered everything, which the transition function takes
    /// for granted of the sessions that it finds.
    #[cfg(test)]
    pub(super) fn keeping_sessions(self) -> Self {
        Self { ends_sessions: false, ..self }
    }

    /// The same rows over other connections.
    pub(super) fn over(&self, driver: MysqlDriver) -> Self {
        Self { driver, ..self.clone() }
    }

    pub(super) const fn driver(&self) -> &MysqlDriver {
        &self.driver
    }

    pub(super) fn explain(&self, failure: Failure) -> BackendError {
        if failure.is_lasting()
            && !self.has_worked.load(Ordering::Relaxed)
            && let Some(reason) = failure.remedy()
        {
            return BackendError::Unfit(reason);
        }
        match failure.is_unexecuted() {
            true => BackendError::Refused(failure.into_source()),
            false => BackendError::Unknown(failure.into_source()),
        }
    }

    async fn run(&self, statement: &Statement, values: &[Value]) -> Result<Vec<Row>, BackendError> {
        let ran = self.driver.attempt_within(self.response, statement, &values.into()).await;
        self.noted(ran)
    }

    /// Removes keys that nobody remembers.
    pub(super) async fn sweep(&self) {
        let values = [Value::Integer(BATCH.cast_signed())];
        for _ in 0..BATCHES {
            let script = [(&self.statements.sweep, &values[..])];
            match self.driver.attempt_script(self.response, &script).await {
                Ok(told) if told.iter().any(|told| told.affected >= BATCH) => {}
                Ok(_) => return,
                Err(failure) => {
                    tracing::debug!(?failure, "keys that nobody remembers were not removed");
                    return;
                }
            }
        }
    }

    /// Takes a key if it is free.
    async fn take(
        &self,
        key: &CoordinationKey,
        ticket: &TicketId,
        epoch: u32,
        limits: &Limits,
    ) -> Result<Option<Outcome>, BackendError> {
        let values = rows::take_values(key, ticket, epoch, limits);
        let script = [(&self.statements.take, &values[..]), (&self.statements.taken, &values[..3])];
        let told = self.run_script(self.response, &script).await?;
        let [take, taken] = &told[..] else { return Ok(None) };
        Ok(granted(take, taken)?.map(Outcome::from))
    }

    /// Runs several statements in one round trip.
    pub(super) async fn run_script(
        &self,
        response: Duration,
        script: &[(&Statement, &[Value])],
    ) -> Result<Vec<Told>, BackendError> {
        self.noted(self.driver.attempt_script(response, script).await)
    }

    /// Runs the statements of one transaction in one round trip, and again when others hindered it.
    #[cfg(feature = "durability")]
    pub(super) async fn run_transaction(
        &self,
        response: Duration,
        script: &[(&Statement, &[Value])],
    ) -> Result<Vec<Told>, BackendError> {
        self.noted(self.driver.insist_on_script(response, script).await)
    }

    fn noted<T>(&self, told: Result<T, Failure>) -> Result<T, BackendError> {
        let told = told.map_err(|failure| self.explain(failure))?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(told)
    }

    #[cfg(feature = "durability")]
    pub(super) fn statements(&self) -> &Statements {
        &self.statements
    }
}

/// What `take` and `taken` say, if the key was taken.
pub(super) fn granted(take: &Told, taken: &Told) -> Result<Option<Reply>, BackendError> {
    let Some(row) = taken.rows.first().filter(|_| take.insert_id > 0) else { return Ok(None) };
    let grant = rows::grant(row.clone()).map_err(unreadable)?;
    // It may have been taken from this replica already, which then was given for dead.
    Ok((grant.fence.get() == take.insert_id).then_some(Reply::Granted(grant)))
}

pub(super) fn unreadable(error: DriverError) -> BackendError {
    BackendError::Unknown(Box::new(error))
}

#[async_trait]
impl LedgerStore for Rows {
    async fn read(&self, key: Option<&CoordinationKey>) -> Result<Snapshot, BackendError> {
        let values = [key.map_or(Value::Null, |key| key.as_str().into())];
        let read = self.run(&self.statements.read, &values).await?;
        let mut snapshot = rows::snapshot(read).map_err(unreadable)?;
        if snapshot.server.ends_with('/') {
            // Nobody has given this run its number yet.
            self.run(&self.statements.name_run, &[]).await?;
            let read = self.run(&self.statements.read, &values).await?;
            snapshot = rows::snapshot(read).map_err(unreadable)?;
        }
        if self.ends_sessions {
            rows::end_sessions_of_another_run(&mut snapshot);
        }
        Ok(snapshot)
    }

    async fn write(&self, change: Change<'_>) -> Result<bool, BackendError> {
        let statements = &*self.statements;
        let turn = match &change.turn {
            None => None,
            Some((key, write)) => {
                let values = rows::turn_values(key, write);
                let values = values.map_err(|error| BackendError::Refused(Box::new(error)))?;
                let statement = match write.expected {
                    0 => &statements.create_turn,
                    _ => &statements.replace_turn,
                };
                Some((statement, values))
            }
        };
        let Some(space) = &change.space else {
            let Some((statement, values)) = turn else { return Ok(true) };
            return Ok(!self.run(&statement.alone, &values).await?.is_empty());
        };
        let space_values = rows::space_values(space);
        let write_space = match space.expected {
            0 => &statements.create_space,
            _ => &statements.replace_space,
        };
        let sessions = &space.state.sessions;
        let session_values = rows::session_values(sessions);
        let (write_sessions, remove_sessions) = statements.sessions(sessions.len());
        let mut script: Vec<(&Statement, &[Value])> = vec![
            (&statements.begin, &[]),
            (&statements.forget_insert_id, &[]),
            (write_space, &space_values),
            (&statements.keep_insert_id, &[]),
        ];
        let space_at = 2;
        script.extend(write_sessions.iter().map(|write| (write, &session_values[..])));
        script.push((&remove_sessions, &session_values));
        let turn_at = script.len();
        script.extend(turn.iter().map(|(write, values)| (&write.after_space, &values[..])));
        script.push((&statements.commit, &[]));
        let told = self.run_script(self.response, &script).await?;
        let wrote = |at: usize| told.get(at).is_some_and(|told| told.insert_id > 0);
        Ok(wrote(space_at) && (turn.is_none() || wrote(turn_at)))
    }

    async fn shortcut(
        &self,
        operation: &Operation,
        limits: &Limits,
    ) -> Result<Option<Outcome>, BackendError> {
        match operation {
            Operation::Reserve { key, ticket, epoch }
            | Operation::Attempt { key, ticket, epoch } => {
                self.take(key, ticket, *epoch, limits).await
            }
            Operation::Release { key, ticket } => {
                let values = rows::give_back_values(key, ticket, limits);
                let gave = self.run(&self.statements.give_back, &values).await?;
                Ok((!gave.is_empty()).then(|| Reply::Released { next: None }.into()))
            }
            _ => Ok(None),
        }
    }
}
