//! The functions against the transition function: the same operations at the same times give the
//! same answers, the same wake-ups and the same state.

mod burying;

use std::collections::{BTreeMap, VecDeque};
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
use botmesh_test_support::absent;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sqlx::postgres::PgListener;
use sqlx::{Acquire as _, AssertSqlSafe, Executor as _};

use super::backend::PostgresBackend;
use super::batch::{self, Batch};
use super::crowd::Crowd;
use super::schema::{self, Statements};
use super::wire::{decode, encode, read_wakeup};
use crate::PostgresStore;
use crate::protocol::{self, Bind, Protocol};

/// How operations are sent that can go with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Each to its function.
    Alone,
    /// In the statement for keys that nobody waits for, where that decides them.
    Together,
    /// To the function that decides many, one after the other.
    InTurn,
}

/// Runs the functions over a clock that is a setting of the connection.
struct ToldPostgres {
    /// Calls the functions, and hears at once what they tell.
    listener: PgListener,
    names: TablePrefix,
    statements: Statements,
    /// Who listens at which channel.
    channels: BTreeMap<String, IncarnationId>,
    how: How,
    /// How many were answered together.
    answered: u32,
}

impl ToldPostgres {
    async fn new(store: &PostgresStore, url: &str, how: How) -> Self {
        let names = store.sql.prefix().clone();
        let mut listener = PgListener::connect(url).await.unwrap();
        let told = "CREATE OR REPLACE FUNCTION {p}coordination_clock() RETURNS BIGINT LANGUAGE sql
                VOLATILE AS $$ SELECT CAST(current_setting('botmesh.clock') AS BIGINT) $$;
            CREATE OR REPLACE FUNCTION {p}coordination_run() RETURNS BIGINT LANGUAGE sql
                STABLE AS $$ SELECT CAST(current_setting('botmesh.run') AS BIGINT) $$";
        let told = Dialect::POSTGRES.statement(told, &names).text().to_string();
        listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
        let (statements, channels) = (Statements::new(&names), BTreeMap::new());
        Self { listener, names, statements, channels, how, answered: 0 }
    }

    async fn tell(&mut self, moment: Moment) {
        let (now, run) = (moment.now.as_micros(), moment.run);
        let told = format!("SET botmesh.clock = '{now}'; SET botmesh.run = '{run}'");
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
    }

    async fn run<V: Bind>(&mut self, statement: &Statement, values: &[V]) -> Vec<Row> {
        let connection = self.listener.acquire().await.unwrap();
        let ran = protocol::run(connection, Protocol::Prepared, statement, values).await;
        ran.expect("the function fails")
    }
}

impl ToldPostgres {
    /// Sends an operation in one statement with another one, on a key that nobody else uses.
    async fn send_together(&mut self, operation: &Operation) -> Option<Reply> {
        let (Operation::Reserve { ticket, .. } | Operation::Release { ticket, .. }) = operation
        else {
            return None;
        };
        let epoch = match operation {
            Operation::Reserve { epoch, .. } => *epoch,
            _ => u32::MAX,
        };
        let bystander = |name: &str, sequence: u64| Operation::Reserve {
            key: LeaderName::new(name).unwrap().into(),
            ticket: TicketId { incarnation: ticket.incarnation.clone(), sequence },
            epoch,
        };
        let (beside, alone) = (bystander("beside", 1 << 40), bystander("alone", 2 << 40));
        let mut waiting = VecDeque::from([(operation.clone(), ()), (beside.clone(), ())]);
        let batch = Batch::take(&mut waiting).unwrap().batch;
        assert!(waiting.is_empty() && !batch.is_single(), "both go together");
        let statement = self.statements.batch.clone();
        let rows = self.run(&statement, &batch.call(&told::limits()).arguments()).await;
        let mut answers = batch.answers(rows).unwrap();
        let own = batch.into_parts().iter().position(|(part, ())| part == operation).unwrap();
        let answer = answers.remove(own);

        // The other one has a free key, which the function grants to whomever it grants anything.
        let (statement, values) = encode(&alone, &told::limits(), "", &self.statements).unwrap();
        let (statement, values) = (statement.clone(), values);
        let wanted = decode(self.run(&statement, &values).await).unwrap();
        let granted = |reply: Option<&Reply>| matches!(reply, Some(Reply::Granted(_)));
        assert_eq!(granted(answers[0].as_ref()), granted(Some(&wanted)), "{wanted:?}");
        let forget = "DELETE FROM {p}coordination_turns WHERE name IN ({1}, {2})";
        let forget = Dialect::POSTGRES.statement(forget, &self.names);
        let keys = [&beside, &alone].map(|one| one.key().unwrap().as_str().into());
        self.run::<Value>(&forget, &keys).await;

        self.answered += u32::from(answer.is_some());
        answer
    }

    /// Sends an operation to the function that decides many.
    async fn send_in_turn(&mut self, operation: &Operation) -> Reply {
        let crowd = Crowd::take(&mut VecDeque::from([(operation.clone(), ())])).unwrap();
        let statement = self.statements.crowd.clone();
        let rows = self.run(&statement, &crowd.call(&told::limits()).arguments()).await;
        crowd.answers(rows).unwrap().remove(0)
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
        if self.how == How::Together
            && let Some(reply) = self.send_together(operation).await
        {
            let wakeups = Some(Vec::new());
            assert!(self.listener.next_buffered().is_none(), "nobody waits for what is free");
            return Ok(Told { reply, wakeups });
        }
        let reply = if self.how == How::InTurn && batch::is_common(operation) {
            self.send_in_turn(operation).await
        } else {
            let (statement, values) =
                encode(operation, &told::limits(), &channel, &self.statements).unwrap();
            let (statement, values) = (statement.clone(), values);
            decode(self.run(&statement, &values).await).unwrap()
        };
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
        Ok(self.run::<Value>(&read, &[]).await.into_iter().map(session).collect())
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
        let row = self.run::<Value>(&read, &[key.as_str().into(), now]).await.into_iter().next();
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

pub(super) fn url() -> Option<String> {
    absent::server("BOTMESH_TEST_POSTGRES_URL")
}

pub(super) async fn store(url: &str) -> PostgresStore {
    let store = PostgresStore::connect(url).prefix(prefix()).max_connections(2).await.unwrap();
    schema::prepare(&store).await.unwrap();
    store
}

/// Compares many sequences, and answers how many operations were answered together.
fn decides_as_the_transition_function_does(how: How, cases: u32) -> u32 {
    let Some(url) = url() else { return u32::MAX };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(store(&url));
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let (granted, answered) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let choices = prop::collection::vec(any::<u8>(), 80..560);
    let outcome = runner.run(&choices, |choices| {
        runtime.block_on(async {
            let mut backend = ToldPostgres::new(&store, &url, how).await;
            let grants = told::agrees(&mut backend, &choices).await;
            granted.set(granted.get() + grants.map_err(|e| TestCaseError::fail(e.to_string()))?);
            answered.set(answered.get() + backend.answered);
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(granted.get() > cases * 3, "only {} grants in {cases} sequences", granted.get());
    answered.get()
}

/// C3, C16: the functions decide as the transition function does, from which the model check proves
/// order and exclusion.
#[test]
fn functions_decide_as_the_transition_function_does() {
    decides_as_the_transition_function_does(How::Alone, 100);
}

/// C3, C16: so does the statement by which many operations go together, with the functions for what
/// it leaves to them.
#[test]
fn operations_that_go_together_are_decided_as_the_transition_function_does() {
    let answered = decides_as_the_transition_function_does(How::Together, 60);
    assert!(answered > 60, "only {answered} operations were answered together");
}

/// C3, C16: so does the function that decides many operations on contended keys.
#[test]
fn operations_in_turn_are_decided_as_the_transition_function_does() {
    decides_as_the_transition_function_does(How::InTurn, 60);
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
