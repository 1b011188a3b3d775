//! Turns that take the steps of the store's inbox along: one statement before a message and one
//! after it.

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Arrival, BackendError, Departure, JournalBackend};
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::store::{Admission, Commit, Committed, NewRecord, Realm, StoreError};
use botmesh_sql::{Dialect, DriverError, Joined, Row, SqlStore, Statement, Value};

use super::calls::Calls;
use super::home::{Home, run_at};
use super::wire::decode_row;
use crate::driver::PostgresDriver;

/// The inbox of the store that the coordinator was made of.
#[derive(Debug)]
pub(super) struct Journal {
    store: Arc<SqlStore<PostgresDriver>>,
    calls: Arc<Calls>,
    home: Home,
    arrive: Statement,
    ends: Joined,
}

const ARRIVE: &str = "SELECT a.admitted, a.known, a.place, a.waiting, r.begun,
    r.code, r.first, r.second, r.third, r.before
FROM {p}inbox_admit({1}, NULLIF({2}, ''), {3}, {4}, {5}, {6}, {7}) AS a,
    LATERAL {p}coordination_arrive(a.admitted, {1}, a.place, a.waiting, {6},
        {8}, {9}, {10}, {11}, {12}, {13}, {14}) AS r";

const COLUMNS: &str = "r.code, r.first, r.second, r.third, r.before";
const RELEASE: &str = "LATERAL {p}coordination_release({+1}, {+2}, {+3}, {+4}, {+5}, {+6}) AS r";

impl Journal {
    pub(super) fn new(store: Arc<SqlStore<PostgresDriver>>, calls: Arc<Calls>, home: Home) -> Self {
        let arrive = Dialect::POSTGRES.statement(ARRIVE, store.prefix());
        let ends = Joined::new(&store, COLUMNS, RELEASE, 6);
        Self { store, calls, home, arrive, ends }
    }

    /// Runs a statement of which at most one row is the answer.
    async fn run(
        &self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Option<Row>, BackendError> {
        let (calls, statement) = (Arc::clone(&self.calls), statement.clone());
        let running = async move { calls.row(&statement, values).await };
        let ran = run_at(&self.home.handle(), running).await;
        self.store.sweep_now_and_then().await;
        ran.unwrap_or_else(|ended| Err(BackendError::Unknown(Box::new(ended))))
    }
}

/// What the inbox cannot hold was not sent: it is told when the step is made alone.
fn unfit(error: StoreError) -> BackendError {
    BackendError::Refused(error.into())
}

fn unreadable(error: DriverError) -> BackendError {
    BackendError::Unknown(error.into())
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
        let mut values = Joined::admission(&self.store, &record).map_err(unfit)?;
        // That it is a reservation is known there.
        values.extend(self.calls.values(reserve)?.into_iter().skip(1));
        let row = self.run(&self.arrive, values).await?;
        let row = row.ok_or_else(|| BackendError::Unknown("there is no answer".into()))?;
        read_arrival(row).map_err(unreadable)
    }

    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError> {
        let (statement, mut values) = self.ends.end(&self.store, &commit).map_err(unfit)?;
        values.extend(self.calls.values(release)?);
        match self.run(statement, values).await? {
            None => Ok(Departure { committed: Committed::Refused, reply: None }),
            Some(mut row) => {
                let committed = Joined::committed(&mut row, &commit).map_err(unreadable)?;
                let reply = Some(decode_row(row).map_err(unreadable)?);
                Ok(Departure { committed, reply })
            }
        }
    }
}

fn read_arrival(mut row: Row) -> Result<Arrival, DriverError> {
    let admission = Joined::admitted(&mut row)?;
    let is_begun = row.integer()? > 0;
    let is_new = matches!(admission, Admission::New { .. });
    let reply = is_new.then(|| decode_row(row)).transpose()?;
    let is_begun = is_begun && matches!(reply, Some(Reply::Granted(_)));
    Ok(Arrival { admission, reply, is_begun })
}
