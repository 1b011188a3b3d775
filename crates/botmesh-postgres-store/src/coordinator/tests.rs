//! The functions against the transition function: the same operations at the same times give the
//! same answers, the same wake-ups and the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use botmesh_core::LeaderName;
use botmesh_core::conformance::differential;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::transition::{
    At, Ledger, Limits, Operation, Outcome, Reply, ServerTime, TicketId, step,
};
use botmesh_core::id::IncarnationId;
use botmesh_sql::{Dialect, TablePrefix, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use sqlx::postgres::PgListener;
use sqlx::{Acquire as _, AssertSqlSafe, Executor as _};

use super::backend::PostgresBackend;
use super::schema::{self, Statements};
use super::wire::{decode, encode, read_wakeup};
use crate::PostgresStore;
use crate::protocol::{self, Protocol};

const MILLI: u64 = 1000;
/// Leases that can be halved and divided by three without a rest.
const LEASES: [u64; 2] = [600 * MILLI, 900 * MILLI];

/// One step of a sequence. Numbers choose among what is there at that time.
#[derive(Debug, Clone)]
enum Action {
    Register { who: usize, lease: usize },
    Heartbeat { who: usize, bumps: bool, age: u64 },
    RenewAll,
    Stop { who: usize },
    Ask { who: usize, key: usize, attempts: bool, stale: bool },
    Repeat { ticket: usize },
    Poll { ticket: usize },
    Release { ticket: usize },
    Touch { ticket: usize },
    Pass { time: u64 },
    SetBack { time: u64 },
    Restart,
    Wipe,
    Sweep,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let (who, key, ticket) = (0..3_usize, 0..2_usize, 0..8_usize);
    let short = prop::sample::select(vec![1, 5, 20, 40, 60, 100]);
    let long = prop::sample::select(vec![200, 301, 450, 601, 900, 1300, 3000]);
    let age = prop::sample::select(vec![0, 299, 300, 449, 450, 5000]);
    let action = prop_oneof![
        1 => (who.clone(), 0..2_usize).prop_map(|(who, lease)| Action::Register { who, lease }),
        20 => Just(Action::RenewAll),
        4 => (who.clone(), prop::bool::weighted(0.2), age)
            .prop_map(|(who, bumps, age)| Action::Heartbeat { who, bumps, age }),
        1 => who.clone().prop_map(|who| Action::Stop { who }),
        40 => (who, key, prop::bool::weighted(0.2), prop::bool::weighted(0.1)).prop_map(
            |(who, key, attempts, stale)| Action::Ask { who, key, attempts, stale }
        ),
        2 => ticket.clone().prop_map(|ticket| Action::Repeat { ticket }),
        15 => ticket.clone().prop_map(|ticket| Action::Poll { ticket }),
        30 => ticket.clone().prop_map(|ticket| Action::Release { ticket }),
        1 => ticket.prop_map(|ticket| Action::Touch { ticket }),
        10 => short.prop_map(|time| Action::Pass { time: time * MILLI }),
        2 => long.clone().prop_map(|time| Action::Pass { time: time * MILLI }),
        1 => long.prop_map(|time| Action::SetBack { time: time * MILLI }),
        // Longer than a free key is remembered, and than one that is held.
        1 => prop::sample::select(vec![1_300_000, 90_000_000])
            .prop_map(|time| Action::Pass { time: time * MILLI }),
        1 => Just(Action::Restart),
        1 => Just(Action::Wipe),
        1 => Just(Action::Sweep),
    ];
    // Without the first registrations, and the time until grace is over and nobody is a newcomer,
    // most sequences would be all refusals.
    let mut begin: Vec<Action> =
        [0, 1, 2].map(|who| Action::Register { who, lease: who % 2 }).into();
    for _ in 0..4 {
        begin.extend([Action::Pass { time: 250 * MILLI }, Action::RenewAll]);
    }
    prop::collection::vec(action, 20..140)
        .prop_map(move |rest| begin.iter().cloned().chain(rest).collect())
}

/// Both sides, and the callers.
struct Pair {
    /// Runs the functions, and hears at once what they tell.
    listener: PgListener,
    names: TablePrefix,
    statements: Statements,
    limits: Limits,
    ledger: Ledger,
    now: u64,
    run: u64,
    callers: Vec<Caller>,
    keys: [CoordinationKey; 2],
    tickets: Vec<(TicketId, CoordinationKey)>,
    sequence: u64,
    /// Who listens at which channel.
    channels: BTreeMap<String, IncarnationId>,
    granted: u32,
}

struct Caller {
    incarnation: IncarnationId,
    epoch: u32,
}

impl Pair {
    async fn new(store: &PostgresStore, url: &str) -> Self {
        let names = store.sql.prefix().clone();
        let mut listener = PgListener::connect(url).await.unwrap();
        let told = "CREATE OR REPLACE FUNCTION {p}coordination_clock() RETURNS BIGINT LANGUAGE sql
                VOLATILE AS $$ SELECT CAST(current_setting('botmesh.clock') AS BIGINT) $$;
            CREATE OR REPLACE FUNCTION {p}coordination_run() RETURNS BIGINT LANGUAGE sql
                STABLE AS $$ SELECT CAST(current_setting('botmesh.run') AS BIGINT) $$";
        let told = Dialect::POSTGRES.statement(told, &names).text().to_string();
        listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
        let key =
            |number: u32| CoordinationKey::from(LeaderName::new(format!("k|{number}")).unwrap());
        let limits = Limits {
            max_queue: 3,
            held: Duration::from_secs(24 * 3600),
            idle: Duration::from_secs(1200),
            grace: Duration::from_micros(LEASES[0]),
        };
        let callers = (0..3).map(|who| Caller { incarnation: incarnation_of(who, 0), epoch: 0 });
        Self {
            listener,
            statements: Statements::new(&names),
            names,
            limits,
            ledger: Ledger::default(),
            now: 1_800_000_000_000_000,
            run: 1,
            callers: callers.collect(),
            keys: [key(0), key(1)],
            tickets: Vec::new(),
            sequence: 0,
            channels: BTreeMap::new(),
            granted: 0,
        }
    }

    async fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        let operation = match action {
            Action::Pass { time } => {
                self.now += time;
                return Ok(());
            }
            Action::SetBack { time } => {
                self.now -= time;
                return Ok(());
            }
            Action::Restart => {
                self.run += 1;
                return Ok(());
            }
            Action::Wipe => {
                self.wipe().await;
                return Ok(());
            }
            Action::Sweep => {
                self.tell_time().await;
                let sweep = self.statements.sweep.clone();
                self.run(&sweep, &[Value::Integer(100)]).await;
                return Ok(());
            }
            Action::Register { who, lease } => {
                // Half of the time under the name that it has.
                if (self.now / MILLI).is_multiple_of(2) {
                    let name = incarnation_of(*who, self.now);
                    self.callers[*who] = Caller { incarnation: name, epoch: 0 };
                }
                let incarnation = self.callers[*who].incarnation.clone();
                let lease = Duration::from_micros(LEASES[*lease]);
                Operation::Register { incarnation, lease }
            }
            Action::Heartbeat { who, bumps, age } => {
                let caller = &mut self.callers[*who];
                caller.epoch += u32::from(*bumps);
                let (incarnation, epoch) = (caller.incarnation.clone(), caller.epoch);
                Operation::Heartbeat { incarnation, epoch, age: Duration::from_millis(*age) }
            }
            Action::RenewAll => return self.renew_all().await,
            Action::Stop { who } => {
                Operation::Stop { incarnation: self.callers[*who].incarnation.clone() }
            }
            Action::Ask { who, key, attempts, stale } => {
                let caller = &self.callers[*who];
                self.sequence += 1;
                let ticket =
                    TicketId { incarnation: caller.incarnation.clone(), sequence: self.sequence };
                let key = self.keys[*key].clone();
                let epoch = caller.epoch.saturating_sub(u32::from(*stale));
                self.tickets.push((ticket.clone(), key.clone()));
                match attempts {
                    true => Operation::Attempt { key, ticket, epoch },
                    false => Operation::Reserve { key, ticket, epoch },
                }
            }
            Action::Repeat { ticket } => match self.ticket(*ticket) {
                Some((ticket, key)) => Operation::Reserve { key, ticket, epoch: u32::MAX },
                None => return Ok(()),
            },
            Action::Poll { ticket } => match self.ticket(*ticket) {
                Some((ticket, key)) => Operation::Poll { key, ticket },
                None => return Ok(()),
            },
            Action::Release { ticket } => match self.ticket(*ticket) {
                Some((ticket, key)) => Operation::Release { key, ticket },
                None => return Ok(()),
            },
            Action::Touch { ticket } => match self.ticket(*ticket) {
                Some((ticket, key)) => Operation::Touch { key, ticket },
                None => return Ok(()),
            },
        };
        self.compare(&operation).await.map(drop)
    }

    async fn renew_all(&mut self) -> Result<(), TestCaseError> {
        for who in 0..self.callers.len() {
            let Caller { incarnation, epoch } = &self.callers[who];
            let (incarnation, epoch) = (incarnation.clone(), *epoch);
            let age = Duration::from_millis(350);
            let heartbeat = Operation::Heartbeat { incarnation, epoch, age };
            if self.compare(&heartbeat).await? == Reply::Expired {
                let incarnation = incarnation_of(who, self.now);
                let lease = Duration::from_micros(LEASES[who % 2]);
                self.callers[who] = Caller { incarnation: incarnation.clone(), epoch: 0 };
                self.compare(&Operation::Register { incarnation, lease }).await?;
            }
        }
        Ok(())
    }

    /// One of the last tickets.
    fn ticket(&self, number: usize) -> Option<(TicketId, CoordinationKey)> {
        self.tickets.iter().rev().nth(number).cloned()
    }

    async fn wipe(&mut self) {
        let wipe =
            "TRUNCATE {p}coordination_space, {p}coordination_sessions, {p}coordination_turns";
        let wipe = Dialect::POSTGRES.statement(wipe, &self.names).text().to_string();
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(wipe))).await.unwrap();
        self.ledger = Ledger::default();
    }

    async fn tell_time(&mut self) {
        let told = format!("SET botmesh.clock = '{}'; SET botmesh.run = '{}'", self.now, self.run);
        self.listener.execute(sqlx::raw_sql(AssertSqlSafe(told))).await.unwrap();
    }

    async fn run(
        &mut self,
        statement: &botmesh_sql::Statement,
        values: &[Value],
    ) -> Vec<botmesh_sql::Row> {
        let connection = self.listener.acquire().await.unwrap();
        let ran = protocol::run(connection, Protocol::Prepared, statement, values).await;
        ran.expect("the function fails")
    }

    /// Executes an operation on both sides.
    async fn compare(&mut self, operation: &Operation) -> Result<Reply, TestCaseError> {
        let run = format!("{:x}", self.run);
        let now = ServerTime::from_micros(self.now);
        let wanted = step(&mut self.ledger, operation, &At::new(now, &run, &self.limits));
        let mut channel = String::new();
        if let Operation::Register { incarnation, .. } = operation {
            channel = format!("{}-{}", self.names, self.channels.len());
            self.listener.listen(&channel).await.unwrap();
            self.channels.insert(channel.clone(), incarnation.clone());
        }
        self.tell_time().await;
        let (statement, values) =
            encode(operation, &self.limits, &channel, &self.statements).unwrap();
        let (statement, values) = (statement.clone(), values);
        let found = decode(self.run(&statement, &values).await).unwrap();
        prop_assert_eq!(&found, &wanted.reply, "the answer to {:?}", operation);
        if found == Reply::Duplicate {
            // The channel of the first one holds.
            self.channels.remove(&channel);
        }
        let granted = matches!(found, Reply::Granted(_) | Reply::Released { next: Some(_) });
        self.granted += u32::from(granted || wanted.wakeup.is_some());
        self.compare_wakes(&wanted)?;
        self.compare_state(operation).await?;
        Ok(found)
    }

    /// On the connection that called a function what that told comes before its answer.
    fn compare_wakes(&mut self, wanted: &Outcome) -> Result<(), TestCaseError> {
        let mut found = Vec::new();
        while let Some(notification) = self.listener.next_buffered() {
            let incarnation = self.channels.get(notification.channel());
            found.extend(incarnation.and_then(|own| read_wakeup(notification.payload(), own)));
        }
        // Nobody hears for a session that is gone.
        let sessions = &self.ledger.sessions;
        let heard = |ticket: &TicketId| sessions.get(&ticket.incarnation).is_some();
        let wanted: Vec<_> =
            wanted.wakeup.iter().filter(|wakeup| heard(&wakeup.ticket)).cloned().collect();
        prop_assert_eq!(found, wanted, "the wake-ups");
        Ok(())
    }

    async fn compare_state(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        let read = "SELECT name, expires_at, lease, registered_at, epoch
            FROM {p}coordination_sessions ORDER BY name";
        let read = Dialect::POSTGRES.statement(read, &self.names);
        let mut found = Vec::new();
        for mut row in self.run(&read, &[]).await {
            let name = row.text().unwrap();
            let numbers: Vec<_> = (0..4).map(|_| row.number().unwrap()).collect();
            found.push((name, numbers));
        }
        let wanted: Vec<_> = self
            .ledger
            .sessions
            .iter()
            .map(|(incarnation, session)| {
                let lease = u64::try_from(session.lease.as_micros()).unwrap();
                let (expires, registered) = (session.expires_at, session.registered_at);
                let numbers =
                    vec![expires.as_micros(), lease, registered.as_micros(), session.epoch.into()];
                (incarnation.as_str().to_owned(), numbers)
            })
            .collect();
        prop_assert_eq!(found, wanted, "the sessions after {:?}", operation);
        let Some(key) = operation.key() else { return Ok(()) };
        let read =
            "SELECT coalesce(holder, ''), coalesce(ticket, 0), fence, coalesce(previous, ''),
                coalesce((SELECT string_agg(q.w || convert_to('/' || q.t, 'UTF8'), ',' ORDER BY q.n)
                    FROM unnest(waiting, tickets) WITH ORDINALITY AS q (w, t, n)), '')
            FROM {p}coordination_turns WHERE name = {1} AND expires_at > {2}";
        let read = Dialect::POSTGRES.statement(read, &self.names);
        let now = Value::Integer(i64::try_from(self.now).unwrap());
        let row = self.run(&read, &[key.as_str().into(), now]).await.into_iter().next();
        let record = self.ledger.records.get(key);
        let Some(mut row) = row else {
            prop_assert!(record.is_none(), "the record is missing after {:?}", operation);
            return Ok(());
        };
        let (holder, ticket, fence) =
            (row.text().unwrap(), row.number().unwrap(), row.number().unwrap());
        let (previous, queue) = (row.text().unwrap(), row.text().unwrap());
        // The row of a record that has expired keeps its fence, which is more than is asked.
        let forgotten = record.is_none_or(|record| record.fence().get() == 0);
        let fence = if forgotten { 0 } else { fence };
        let found =
            (holder.clone(), if holder.is_empty() { 0 } else { ticket }, fence, previous, queue);
        let wanted = record.map(|record| {
            let holder = record.holder();
            let queue: Vec<_> = record
                .queue()
                .map(|ticket| format!("{}/{}", ticket.incarnation.as_str(), ticket.sequence))
                .collect();
            (
                holder.map(|holder| holder.incarnation.as_str().to_owned()).unwrap_or_default(),
                holder.map_or(0, |holder| holder.sequence),
                record.fence().get(),
                record
                    .previous()
                    .map(|last| last.incarnation.as_str().to_owned())
                    .unwrap_or_default(),
                queue.join(","),
            )
        });
        prop_assert_eq!(found, wanted.unwrap_or_default(), "after {:?}", operation);
        Ok(())
    }
}

/// A name with all that could be taken for a part of the format.
fn incarnation_of(who: usize, number: u64) -> IncarnationId {
    IncarnationId::new(format!("{who}|/{{}}\n-{number}#1")).unwrap()
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
    let outcome = runner.run(&actions(), |actions| {
        runtime.block_on(async {
            let mut pair = Pair::new(&store, &url).await;
            pair.wipe().await;
            for action in &actions {
                pair.act(action).await?;
            }
            granted.set(granted.get() + pair.granted);
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
