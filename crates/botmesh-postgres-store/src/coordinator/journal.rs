//! Turns that take the steps of the store's inbox along: one statement before a message and one
//! after it.

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::coordination::client::{Arrival, BackendError, Departure, JournalBackend};
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::store::{Admission, Commit, Committed, NewRecord, Realm, StoreError};
use botmesh_sql::{Dialect, DriverError, Joined, Row, SqlStore, Value};

use super::calls::Calls;
use super::home::Home;
use super::wire::decode_row;
use crate::driver::PostgresDriver;
use crate::group::{Group, Sending};
use crate::inbox::change;

/// The inbox of the store that the coordinator was made of.
#[derive(Debug)]
pub(super) struct Journal {
    store: Arc<SqlStore<PostgresDriver>>,
    calls: Arc<Calls>,
    home: Home,
    arrive: Group,
    depart: Group,
}

const ARRIVE: &str = "SELECT a.admitted, a.known, a.place, a.waiting, r.begun,
    r.code, r.first, r.second, r.third, r.before
FROM {p}inbox_admit({1}, NULLIF({2}, ''), {3}, {4}, {5}, {6}, {7}) AS a,
    LATERAL {p}coordination_arrive(a.admitted, {1}, a.place, a.waiting, {6},
        {8}, {9}, {10}, {11}, {12}, {13}, {14}) AS r";
const ARRIVE_SEVERAL: &str =
    "SELECT admitted, known, place, waiting, begun, code, first, second, third, before
    FROM {p}coordination_arrive_several({1}, {2}, {3}, {4}, {5}, {6}, {7},
        {8}, {9}, {10}, {11}, {12}, {13}, {14})";
const DEPART: &str = "SELECT written, code, first, second, third, before
    FROM {p}coordination_depart({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8},
        {9}, {10}, {11}, {12}, {13}, {14})";
const DEPART_SEVERAL: &str = "SELECT written, code, first, second, third, before
    FROM {p}coordination_depart_several({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8},
        {9}, {10}, {11}, {12}, {13}, {14})";

impl Journal {
    pub(super) fn new(store: Arc<SqlStore<PostgresDriver>>, calls: Arc<Calls>, home: Home) -> Self {
        let group = |alone: &str, together: &str| {
            let render = |template: &str| Dialect::POSTGRES.statement(template, store.prefix());
            let (alone, together) = (render(alone), render(together));
            // Whoever reserves or releases decides about what failed.
            Group::new(calls.driver().clone(), Sending { alone, together, is_patient: false })
        };
        let (arrive, depart) = (group(ARRIVE, ARRIVE_SEVERAL), group(DEPART, DEPART_SEVERAL));
        Self { store, calls, home, arrive, depart }
    }

    async fn send(&self, group: &Group, values: Vec<Value>) -> Result<Row, BackendError> {
        let answer = group.send(values, &self.home.handle()).await;
        self.store.sweep_now_and_then().await;
        self.calls.explained(answer)
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
        let row = self.send(&self.arrive, values).await?;
        read_arrival(row).map_err(unreadable)
    }

    async fn commit(
        &self,
        commit: Commit<'_>,
        release: &Operation,
    ) -> Result<Departure, BackendError> {
        let mut values = change::values(&self.store, &commit).map_err(unfit)?;
        values.extend(self.calls.values(release)?);
        let row = self.send(&self.depart, values).await?;
        read_departure(row, &commit).map_err(unreadable)
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

fn read_departure(mut row: Row, commit: &Commit<'_>) -> Result<Departure, DriverError> {
    let committed = change::committed(&mut row, commit)?;
    let is_applied = matches!(committed, Committed::Applied(_));
    let reply = is_applied.then(|| decode_row(row)).transpose()?;
    Ok(Departure { committed, reply })
}
