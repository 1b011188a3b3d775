//! The functions against the transition function: the same operations at the same times give the
//! same answers, the same wake-ups and the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::LeaderName;
use botmesh_core::conformance::told::{self, Moment, Told, ToldBackend};
use botmesh_core::conformance::{CaseError, differential};
use botmesh_core::coordination::transition::{
    Operation, Reply, ServerTime, Session, StoredSession, StoredTurn, TicketId,
};
use botmesh_core::coordination::{CoordinationKey, PreviousHolder};
use botmesh_core::id::{Fence, IncarnationId};
use botmesh_sql::{Dialect, Row, Statement, TablePrefix, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::postgres::PgListener;
use sqlx::{Acquire as _, AssertSqlSafe, Executor as _};

use super::backend::PostgresBackend;
use super::schema::{self, Statements};
use super::wire::{decode, encode, read_wakeup};
use crate::PostgresStore;
use crate::protocol::{self, Protocol};

/// Runs the functions over a clock that is a setting of the connection.
struct ToldPostgres {
    /// Calls the functions, and hears at once what they tell.
    listener: PgListener,
    names: TablePrefix,
    statements: Statements,
    /// Who listens at which channel.
    channels: BTreeMap<String, IncarnationId>,
}

impl ToldPostgres {
    async fn new(store: &PostgresStore, url: &str) -> Self {
        let names = store.sql.prefix().clone();
        let mut listener = PgListener::connect(url).await.unwrap();
        let told = "CREATE OR REPLACE FUNCTION {p}coordination_clock() RETURNS BIGINT LANGUAGE sql
                VOLATILE AS $$ SELECT CAST(current_setting('botmesh.clock') AS BIGINT) $$;
            CREATE OR REPLACE FUNCTION {p}coordination_run() RETURNS BIGINT LANGUAGE sql
                STABLE AS $$ SELECT CAST(current_setting('botmesh.run') AS BIGINT) $$";
        let told = Dialect::POSTGRES.statement(told, &names).text().to_string();
        listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
        let (statements, channels) = (Statements::new(&names), BTreeMap::new());
        Self { listener, names, statements, channels }
    }

    async fn tell(&mut self, moment: Moment) {
        let (now, run) = (moment.now.as_micros(), moment.run);
        let told = format!("SET botmesh.clock = '{now}'; SET botmesh.run = '{run}'");
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
    }

    async fn run(&mut self, statement: &Statement, values: &[Value]) -> Vec<Row> {
        let connection = self.listener.acquire().await.unwrap();
        let ran = protocol::run(connection, Protocol::Prepared, statement, values).await;
        ran.expect("the function fails")
    }
}

#[async_trait]
impl ToldBackend for ToldPostgres {
    fn keys(&self) -> [CoordinationKey; 2] {
        ["k|0", "k|1"].map(|name| LeaderName::new(name).unwrap().into())
    }

    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError> {
        let mut channel = String::new();
        if let Operation::Register { incarnation, .. } = operation {
            channel = format!("{}-{}", self.names, self.channels.len());
            self.listener.listen(&channel).await.unwrap();
            self.channels.insert(channel.clone(), incarnation.clone());
        }
        self.tell(moment).await;
        let (statement, values) =
            encode(operation, &told::limits(), &channel, &self.statements).unwrap();
        let (statement, values) = (statement.clone(), values);
        let reply = decode(self.run(&statement, &values).await).unwrap();
        if reply == Reply::Duplicate {
            // The channel of the first one holds.
            self.channels.remove(&channel);
        }
        // On the connection that called a function what that told comes before its answer.
        let mut wakeups = Vec::new();
        while let Some(notification) = self.listener.next_buffered() {
            let incarnation = self.channels.get(notification.channel());
            wakeups.extend(incarnation.and_then(|own| read_wakeup(notification.payload(), own)));
        }
        Ok(Told { reply, wakeups: Some(wakeups) })
    }

    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError> {
        let read = "SELECT name, expires_at, lease, registered_at, epoch
            FROM {p}coordination_sessions";
        let read = Dialect::POSTGRES.statement(read, &self.names);
        let session = |mut row: Row| {
            let incarnation = IncarnationId::new(row.text().unwrap()).unwrap();
            let mut number = || row.number().unwrap();
            let session = Session {
                expires_at: ServerTime::from_micros(number()),
                lease: Duration::from_micros(number()),
                registered_at: ServerTime::from_micros(number()),
                epoch: u32::try_from(number()).unwrap(),
            };
            StoredSession { incarnation, session }
        };
        Ok(self.run(&read, &[]).await.into_iter().map(session).collect())
    }

    async fn turn(
        &mut self,
        key: &CoordinationKey,
        moment: Moment,
    ) -> Result<Option<StoredTurn>, CaseError> {
        let read =
            "SELECT coalesce(holder, ''), coalesce(ticket, 0), fence, coalesce(previous, ''),
                coalesce((SELECT string_agg(convert_to(q.t || '/', 'UTF8') || q.w, '\\x00' ORDER BY q.n)
                    FROM unnest(waiting, tickets) WITH ORDINALITY AS q (w, t, n)), '')
            FROM {p}coordination_turns WHERE name = {1} AND expires_at > {2}";
        let read = Dialect::POSTGRES.statement(read, &self.names);
        let now = Value::Integer(i64::try_from(moment.now.as_micros()).unwrap());
        let row = self.run(&read, &[key.as_str().into(), now]).await.into_iter().next();
        let Some(mut row) = row else { return Ok(None) };
        let named = |name: String| (!name.is_empty()).then(|| IncarnationId::new(name).unwrap());
        let (holder, sequence) = (named(row.text().unwrap()), row.number().unwrap());
        let (fence, previous) = (row.number().unwrap(), named(row.text().unwrap()));
        let queue = row.text().unwrap();
        let queue = queue.split('\0').filter(|entry| !entry.is_empty()).map(|entry| {
            let (sequence, name) = entry.split_once('/').unwrap();
            let incarnation = IncarnationId::new(name).unwrap();
            TicketId { incarnation, sequence: sequence.parse().unwrap() }
        });
        Ok(Some(StoredTurn {
            holder: holder.map(|incarnation| TicketId { incarnation, sequence }),
            fence,
            previous: previous
                .map(|incarnation| PreviousHolder { incarnation, fence: Fence::new(0) }),
            queue: queue.collect(),
            expires_at: ServerTime::default(),
        }))
    }

    async fn wipe(&mut self) -> Result<(), CaseError> {
        let wipe =
            "TRUNCATE {p}coordination_space, {p}coordination_sessions, {p}coordination_turns";
        let wipe = Dialect::POSTGRES.statement(wipe, &self.names).text().to_string();
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(wipe))).await.unwrap();
        Ok(())
    }

    /// Removes what nobody remembers.
    async fn disturb(&mut self, moment: Moment) -> Result<(), CaseError> {
        self.tell(moment).await;
        let sweep = self.statements.sweep.clone();
        self.run(&sweep, &[Value::Integer(100)]).await;
        Ok(())
    }
}

fn prefix() -> String {
    format!("t{}_", &uuid::Uuid::new_v4().simple().to_string()[..12])
}

fn url() -> Option<String> {
    let url = std::env::var("BOTMESH_TEST_POSTGRES_URL").ok();
    if url.is_none() {
        let required = std::env::var("BOTMESH_REQUIRE_BACKENDS").is_ok_and(|set| set == "1");
        assert!(!required, "the backend is absent, and BOTMESH_REQUIRE_BACKENDS=1 wants it");
        println!("skipped: the backend is absent");
    }
    url
}

async fn store(url: &str) -> PostgresStore {
    let store = PostgresStore::connect(url).prefix(prefix()).max_connections(2).await.unwrap();
    schema::prepare(&store).await.unwrap();
    store
}

/// C3, C16: the functions decide as the transition function does, from which the model check proves
/// order and exclusion.
#[test]
fn functions_decide_as_the_transition_function_does() {
    let Some(url) = url() else { return };
    let cases = 100;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(store(&url));
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let granted = std::cell::Cell::new(0);
    let choices = prop::collection::vec(any::<u8>(), 80..560);
    let outcome = runner.run(&choices, |choices| {
        runtime.block_on(async {
            let mut backend = ToldPostgres::new(&store, &url).await;
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

/// The shared comparison, over the backend as the client uses it.
fn agrees(url: &str, seeds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for seed in 0..seeds {
            let store = store(url).await;
            let (driver, limits) = (store.sql.driver().clone(), differential::limits());
            let backend = PostgresBackend::new(driver, None, limits, Duration::from_secs(5));
            differential::agrees(&backend, &differential::choices(seed, 300)).await.unwrap();
        }
    });
}

/// C3, C16: the backend carries operations and answers as they are, by the server's own clock.
#[test]
fn the_backend_agrees_with_the_function() {
    if let Some(url) = url() {
        agrees(&url, 20);
    }
}

/// C16: so it does through a pooler.
#[test]
fn the_backend_agrees_with_the_function_through_a_pooler() {
    if url().is_some() {
        agrees(&std::env::var("BOTMESH_TEST_POSTGRES_POOLER_URL").unwrap(), 5);
    }
}
