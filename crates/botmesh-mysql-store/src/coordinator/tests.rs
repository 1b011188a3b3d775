//! The statements against the transition function: the same operations at the same times give the
//! same answers and the same state.

#[cfg(feature = "durability")]
mod journal;

use std::cell::Cell;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::LeaderName;
use botmesh_core::conformance::told::{self, Moment, Told, ToldBackend};
use botmesh_core::conformance::{CaseError, differential};
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::Backend as _;
use botmesh_core::coordination::stored::{Change, LedgerStore as _, Snapshot, Write};
use botmesh_core::coordination::transition::{
    Operation, Reply, StoredSession, StoredTurn, TicketId,
};
use botmesh_core::id::IncarnationId;
use botmesh_test_support::absent;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::{AssertSqlSafe, Executor as _};

use super::backend::MysqlBackend;
use super::ledger::Rows;
use super::schema::{self, Statements};
use crate::MysqlStore;

const RESPONSE: Duration = Duration::from_secs(5);

/// The statements over a clock that is a setting of the one connection.
struct ToldMysql {
    store: MysqlStore,
    rows: Rows,
    backend: MysqlBackend,
}

impl ToldMysql {
    /// Over a store with one connection.
    fn new(store: &MysqlStore) -> Self {
        let (names, driver) = (store.sql.prefix(), store.sql.driver().clone());
        let rows =
            Rows::new(driver, Statements::new(names, "@botmesh_run"), RESPONSE).keeping_sessions();
        let backend = MysqlBackend::on(rows.clone(), told::limits(), RESPONSE);
        Self { store: store.clone(), rows, backend }
    }

    async fn run(&self, text: &str) {
        let text = text.replace("{p}", self.store.sql.prefix().as_str());
        let mut lent = self.store.sql.driver().connections.lend().await.unwrap();
        let connection = lent.connection().unwrap();
        connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
    }

    async fn tell(&self, moment: Moment) {
        let now = moment.now.as_micros();
        let (seconds, micros) = (now / 1_000_000, now % 1_000_000);
        let run = format!("{:x}", moment.run);
        let told = format!("SET timestamp = {seconds}.{micros:06}, @botmesh_run = '{run}'");
        self.run(&told).await;
    }

    async fn read(&self, key: Option<&CoordinationKey>) -> Snapshot {
        self.rows.read(key).await.unwrap()
    }
}

#[async_trait]
impl ToldBackend for ToldMysql {
    fn keys(&self) -> [CoordinationKey; 2] {
        ["k|0", "k|1"].map(|name| LeaderName::new(name).unwrap().into())
    }

    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError> {
        self.tell(moment).await;
        let reply = self.backend.send(operation).await.expect("the statements fail");
        Ok(Told { reply, wakeups: None })
    }

    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError> {
        Ok(self.read(None).await.space.state.sessions)
    }

    async fn turn(
        &mut self,
        key: &CoordinationKey,
        moment: Moment,
    ) -> Result<Option<StoredTurn>, CaseError> {
        let turn = self.read(Some(key)).await.turn;
        let lasts = turn.revision > 0 && turn.state.expires_at > moment.now;
        Ok(lasts.then_some(turn.state))
    }

    async fn wipe(&mut self) -> Result<(), CaseError> {
        let wipe = "DELETE FROM {p}coordination_space; DELETE FROM {p}coordination_sessions;
            DELETE FROM {p}coordination_turns";
        self.run(wipe).await;
        Ok(())
    }

    /// Removes what nobody remembers.
    async fn disturb(&mut self, moment: Moment) -> Result<(), CaseError> {
        self.tell(moment).await;
        self.rows.sweep().await;
        Ok(())
    }
}

fn prefix() -> String {
    format!("t{}_", &uuid::Uuid::new_v4().simple().to_string()[..12])
}

fn url() -> Option<String> {
    absent::server("BOTMESH_TEST_MYSQL_URL")
}

async fn store(url: &str) -> MysqlStore {
    let store = MysqlStore::connect(url).prefix(prefix()).max_connections(1).await.unwrap();
    schema::prepare(&store).await.unwrap();
    store
}

/// C3, C16: the statements decide as the transition function does, from which the model check proves
/// order and exclusion.
#[test]
fn statements_decide_as_the_transition_function_does() {
    let Some(url) = url() else { return };
    let cases = 60;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(store(&url));
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let granted = Cell::new(0);
    let choices = prop::collection::vec(any::<u8>(), 80..560);
    let outcome = runner.run(&choices, |choices| {
        runtime.block_on(async {
            let mut backend = ToldMysql::new(&store);
            let grants = told::agrees(&mut backend, &choices).await;
            granted.set(granted.get() + grants.map_err(|e| TestCaseError::fail(e.to_string()))?);
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(granted.get() > cases * 3, "only {} grants in {cases} sequences", granted.get());
}

/// C3, C16: the backend carries operations and answers as they are, by the server's own clock.
#[test]
fn the_backend_agrees_with_the_function() {
    let Some(url) = url() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for seed in 0..20 {
            let store = store(&url).await;
            let (driver, limits) = (store.sql.driver().clone(), differential::limits());
            let backend = MysqlBackend::new(driver, limits, RESPONSE);
            differential::agrees(&backend, &differential::choices(seed, 300)).await.unwrap();
        }
    });
}

/// C4, C7: a write that arrives after its ticket was given up changes nothing, whether the row was
/// there or not when it was decided. No key is held by nobody.
#[test]
fn a_write_that_arrives_after_its_release_takes_nothing() {
    let Some(url) = url() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = store(&url).await;
        let statements = Statements::new(store.sql.prefix(), schema::RUN);
        let rows = Rows::new(store.sql.driver().clone(), statements, RESPONSE);
        let backend = MysqlBackend::on(rows.clone(), differential::limits(), RESPONSE);
        let key: CoordinationKey = LeaderName::new("k").unwrap().into();
        let incarnation = IncarnationId::new("a#1").unwrap();
        let lease = Duration::from_secs(600);
        backend
            .send(&Operation::Register { incarnation: incarnation.clone(), lease })
            .await
            .unwrap();
        for (sequence, is_there) in [(1, false), (2, true)] {
            let before = rows.read(Some(&key)).await.unwrap();
            assert_eq!(before.turn.revision > 0, is_there);
            let ticket = TicketId { incarnation: incarnation.clone(), sequence };
            let release = Operation::Release { key: key.clone(), ticket: ticket.clone() };
            assert_eq!(backend.send(&release).await.unwrap(), Reply::NotHolder);
            let (expected, next) = (before.turn.revision, before.now.as_micros());
            let state = StoredTurn {
                holder: Some(ticket),
                expires_at: before.now.plus(lease),
                ..StoredTurn::default()
            };
            let write = Write { expected, next: next.max(expected + 1), state: &state };
            let change = Change { space: None, turn: Some((&key, write)) };
            assert!(!rows.write(change).await.unwrap(), "written late");
            let turn = rows.read(Some(&key)).await.unwrap().turn;
            assert_eq!(turn.state.holder, None);
        }
    });
}
