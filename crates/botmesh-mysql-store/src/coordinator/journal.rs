//! Turns that take the steps of the store's inbox along: one transaction before a message and one
//! after it, each in one request.
//!
//! Both lock the records of a chat first, then its checkpoint, then its turn.

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Arrival, BackendError, Departure, JournalBackend};
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::store::{Admission, Commit, Committed, NewRecord, Realm};
use botmesh_sql::{Driver as _, Joined, Row, SqlStore, Statement, Steps, Value};

use super::ledger::{granted, unreadable};
use super::rows;
use super::turns::Turns;
use crate::driver::MysqlDriver;
use crate::protocol::Told;

/// The inbox of the store that the coordinator was made of.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    store: Arc<SqlStore<MysqlDriver>>,
    steps: Arc<Steps>,
    turns: Arc<Turns>,
}

/// Statements that are sent together, in one transaction.
struct Script<'a>(Vec<(&'a Statement, &'a [Value])>);

impl<'a> Script<'a> {
    /// Adds a statement, and tells which of the answers is its own.
    fn push(&mut self, statement: &'a Statement, values: &'a [Value]) -> usize {
        self.0.push((statement, values));
        self.0.len() - 1
    }
}

impl Journal {
    pub(super) fn new(store: Arc<SqlStore<MysqlDriver>>, turns: Arc<Turns>) -> Self {
        let steps = Arc::new(Steps::new(&store.driver().dialect(), store.prefix()));
        Self { store, steps, turns }
    }

    /// Admits on these values, and reserves behind it where that was not one step.
    async fn arrive(&self, values: &[Value], reserve: &Operation) -> Result<Arrival, BackendError> {
        let arriving = async {
            let mut arrival = self.take_in(values, reserve).await?;
            if matches!(arrival.admission, Admission::New { .. }) && arrival.reply.is_none() {
                arrival.reply = self.decide(reserve).await;
            }
            Ok(arrival)
        };
        self.in_turn(reserve, arriving).await
    }

    /// Admits and, if it is free, takes the key and begins the record.
    async fn take_in(
        &self,
        values: &[Value],
        reserve: &Operation,
    ) -> Result<Arrival, BackendError> {
        let Operation::Reserve { key, ticket, epoch } = reserve else {
            return Err(BackendError::Refused("it is no reservation".into()));
        };
        let (steps, statements) = (&self.steps, self.turns.rows().statements());
        let taking = rows::take_values(key, ticket, *epoch, &self.turns.limits);
        let mut script = self.begun();
        for step in steps.admission(&self.store) {
            script.push(step, values);
        }
        script.push(&statements.forget_insert_id, &[]);
        let take = script.push(&statements.take_if_admitted, &taking);
        let begin = script.push(steps.begin(), values);
        let admitted = script.push(steps.tell_admission(), &[]);
        let taken = script.push(&statements.taken, &taking[..3]);
        let mut told = self.commit_script(script).await?;
        let mut row = told[admitted].rows.pop().ok_or_else(unanswered)?;
        let admission = Joined::admitted(&mut row).map_err(unreadable)?;
        let reply = match admission {
            Admission::New { .. } => granted(&told[take], &told[taken])?,
            _ => None,
        };
        let is_begun = reply.is_some() && told[begin].affected > 0;
        Ok(Arrival { admission, reply, is_begun })
    }

    /// Makes this end, and releases behind it where that was not one step. None when it was refused.
    async fn depart(
        &self,
        ending: &Statement,
        values: &[Value],
        release: &Operation,
    ) -> Result<Option<(Row, Option<Reply>)>, BackendError> {
        let departing = async {
            let Some((row, is_released)) = self.end(ending, values, release).await? else {
                return Ok(None);
            };
            let reply = match is_released {
                true => Some(Reply::Released { next: None }),
                false => self.decide(release).await,
            };
            Ok(Some((row, reply)))
        };
        self.in_turn(release, departing).await
    }

    /// Makes this end and, if nobody waits for the key, gives it back. What the end tells, and whether
    /// the key was given back; none when it was refused.
    async fn end(
        &self,
        ending: &Statement,
        values: &[Value],
        release: &Operation,
    ) -> Result<Option<(Row, bool)>, BackendError> {
        let Operation::Release { key, ticket } = release else {
            return Err(BackendError::Refused("it is no release".into()));
        };
        let statements = self.turns.rows().statements();
        let giving = rows::give_back_values(key, ticket, &self.turns.limits);
        let mut script = self.begun();
        script.push(&statements.forget_insert_id, &[]);
        for step in self.steps.end(ending) {
            script.push(step, values);
        }
        let give_back = script.push(&statements.give_back_if_ended, &giving);
        let ended = script.push(self.steps.tell_end(), &[]);
        let mut told = self.commit_script(script).await?;
        let row = told[ended].rows.pop().ok_or_else(unanswered)?;
        let is_applied = row.clone().integer().map_err(unreadable)? > 0;
        Ok(is_applied.then(|| (row, told[give_back].insert_id > 0)))
    }

    /// Does `work` as one operation on the key of `operation`.
    async fn in_turn<T>(&self, operation: &Operation, work: impl Future<Output = T>) -> T {
        match operation.key() {
            Some(key) => self.turns.ledger.in_turn(key, work).await,
            None => work.await,
        }
    }

    /// What became of an operation that could not be taken along; none when that is not known.
    async fn decide(&self, operation: &Operation) -> Option<Reply> {
        let Turns { ledger, limits, .. } = &*self.turns;
        let decided = Box::pin(ledger.decide(operation, limits)).await;
        let outcome = decided
            .inspect_err(|error| tracing::debug!(%error, "a step behind one of the inbox failed"));
        outcome.ok().map(|outcome| self.turns.reply(outcome))
    }

    fn begun(&self) -> Script<'_> {
        let statements = self.turns.rows().statements();
        Script(vec![(&statements.see_commits, &[]), (&statements.begin, &[])])
    }

    /// Runs a script that was begun, as patiently as the store does: it is not repeated like an
    /// operation. There are as many answers as statements.
    async fn commit_script(&self, mut script: Script<'_>) -> Result<Vec<Told>, BackendError> {
        let rows = self.turns.rows();
        script.push(&rows.statements().commit, &[]);
        let response = rows.driver().connections.settings().response;
        let told = rows.run_transaction(response, &script.0).await?;
        if told.len() < script.0.len() {
            return Err(unanswered());
        }
        Ok(told)
    }
}

fn unanswered() -> BackendError {
    BackendError::Unknown("there is no answer".into())
}

/// What the inbox cannot hold was not sent: it is told when the step is made alone.
fn unfit(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::Refused(error.into())
}

#[async_trait]
impl JournalBackend for Journal {
    fn realm(&self) -> &Realm {
        self.store.realm()
    }

    async fn ingest(
        &self,
        record: NewRecord<'_>,
        reserve: &Operation,
    ) -> Result<Arrival, BackendError> {
        let values = Joined::admission(&self.store, &record).map_err(unfit)?;
        let (journal, reserve) = (self.clone(), reserve.clone());
        // Boxed, as is the other one: nested in each other, such futures are too deep for the compiler.
        let arriving = Box::pin(async move { journal.arrive(&values, &reserve).await });
        let arrived = self.turns.at_home(arriving).await;
        self.store.sweep_now_and_then().await;
        arrived
    }

    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError> {
        let (ending, values) = Steps::ending(&self.store, &commit).map_err(unfit)?;
        let (journal, release) = (self.clone(), release.clone());
        let departing = Box::pin(async move { journal.depart(&ending, &values, &release).await });
        let departed = self.turns.at_home(departing).await;
        self.store.sweep_now_and_then().await;
        let Some((mut row, reply)) = departed? else {
            return Ok(Departure { committed: Committed::Refused, reply: None });
        };
        let committed = Joined::committed(&mut row, &commit).map_err(unreadable)?;
        Ok(Departure { committed, reply })
    }
}
