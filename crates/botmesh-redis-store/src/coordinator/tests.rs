//! The scripts against the transition function: the same operations at the same times give the
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
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use redis::{FromRedisValue, PushInfo, PushKind, Value};
use tokio::sync::mpsc::UnboundedReceiver;

use super::backend::RedisBackend;
use super::scripts::SCRIPTS_WITH_A_TOLD_CLOCK;
use super::wire::{decode, encode, read_wakeup, write_ticket};
use crate::keys::{Keyspace, Layout};
use crate::link::{Kind, Link};
use crate::servers::{Connection, Servers};

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
    ForgetScripts,
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
        1 => Just(Action::Restart),
        1 => Just(Action::Wipe),
        1 => Just(Action::ForgetScripts),
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
    link: Link,
    space: Keyspace,
    limits: Limits,
    ledger: Ledger,
    now: u64,
    run: u64,
    callers: Vec<Caller>,
    keys: [CoordinationKey; 2],
    tickets: Vec<(TicketId, CoordinationKey)>,
    sequence: u64,
    wakes: Option<UnboundedReceiver<PushInfo>>,
    granted: u32,
}

struct Caller {
    incarnation: IncarnationId,
    epoch: u32,
}

impl Pair {
    async fn new(servers: Servers, layout: Layout) -> Self {
        let link = Link::new(servers.clone(), Kind::Listening);
        let prefix = uuid::Uuid::new_v4().simple().to_string();
        let space = Keyspace::new(&prefix, layout).unwrap();
        // Two keys whose sessions are in one table.
        let key =
            |number: u32| CoordinationKey::from(LeaderName::new(format!("k|{number}")).unwrap());
        let bucket = |key: &CoordinationKey| space.bucket(key.as_str());
        let second = (1..).map(key).find(|other| bucket(other) == bucket(&key(0))).unwrap();
        let open = link.connection().await.unwrap();
        let mut wakes = open.take_messages();
        match open.connection {
            Connection::Node(mut node) => {
                node.psubscribe(format!("{prefix}:co:w:*")).await.unwrap();
            }
            Connection::Cluster(_) => wakes = None,
        }
        let limits = Limits {
            max_queue: 3,
            held: Duration::from_secs(24 * 3600),
            idle: Duration::from_secs(24 * 3600),
            grace: Duration::from_micros(LEASES[0]),
        };
        let callers = (0..3).map(|who| Caller { incarnation: incarnation_of(who, 0), epoch: 0 });
        Self {
            link,
            limits,
            ledger: Ledger::default(),
            now: 1_800_000_000_000_000,
            run: 1,
            callers: callers.collect(),
            keys: [key(0), second],
            tickets: Vec::new(),
            sequence: 0,
            wakes,
            granted: 0,
            space,
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
            Action::Wipe => return self.wipe().await,
            Action::ForgetScripts => {
                let mut flush = redis::cmd("SCRIPT");
                self.link.run(flush.arg("FLUSH")).await.unwrap();
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
            Action::RenewAll => {
                for who in 0..self.callers.len() {
                    let Caller { incarnation, epoch } = &self.callers[who];
                    let (incarnation, epoch) = (incarnation.clone(), *epoch);
                    let age = Duration::from_millis(350);
                    let heartbeat = Operation::Heartbeat { incarnation, epoch, age };
                    if self.compare(&heartbeat).await? == Reply::Expired {
                        let incarnation = incarnation_of(who, self.now);
                        let lease = Duration::from_micros(LEASES[who % 2]);
                        let caller = Caller { incarnation: incarnation.clone(), epoch: 0 };
                        self.callers[who] = caller;
                        self.compare(&Operation::Register { incarnation, lease }).await?;
                    }
                }
                return Ok(());
            }
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

    /// One of the last tickets.
    fn ticket(&self, number: usize) -> Option<(TicketId, CoordinationKey)> {
        self.tickets.iter().rev().nth(number).cloned()
    }

    async fn wipe(&mut self) -> Result<(), TestCaseError> {
        let mut names: Vec<String> = Vec::new();
        for key in &self.keys {
            names.extend(self.space.turn(key.as_str()));
        }
        for name in names {
            self.link.run(redis::cmd("DEL").arg(name)).await.unwrap();
        }
        self.ledger = Ledger::default();
        Ok(())
    }

    /// Executes an operation on both sides.
    async fn compare(&mut self, operation: &Operation) -> Result<Reply, TestCaseError> {
        let run = format!("{:x}", self.run);
        let now = ServerTime::from_micros(self.now);
        let wanted = step(&mut self.ledger, operation, &At::new(now, &run, &self.limits));
        let call =
            encode(operation, &self.space, &self.limits, &SCRIPTS_WITH_A_TOLD_CLOCK).unwrap();
        let keys = match &call.keys {
            Some(keys) => keys.to_vec(),
            None => self.space.turn(self.keys[0].as_str())[..1].to_vec(),
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let told = self.now.to_string();
        let arguments = std::iter::once(run.as_str()).chain(call.arguments.iter()).chain([&*told]);
        let arguments: Vec<&[u8]> = arguments.map(str::as_bytes).collect();
        let answer = self.link.evaluate(call.script, &keys, &arguments).await;
        let found = decode(answer.expect("the script fails")).unwrap();
        prop_assert_eq!(&found, &wanted.reply, "the answer to {:?}", operation);
        let granted = matches!(found, Reply::Granted(_) | Reply::Released { next: Some(_) });
        self.granted += u32::from(granted || wanted.wakeup.is_some());
        self.compare_wakes(&wanted).await?;
        // What operations on sessions changed shows with the next one on a key.
        if operation.key().is_some() {
            self.compare_state(operation).await?;
        }
        Ok(found)
    }

    async fn compare_wakes(&mut self, wanted: &Outcome) -> Result<(), TestCaseError> {
        let Some(wakes) = &mut self.wakes else { return Ok(()) };
        // On the same connection a message comes before the answer of the script that sent it, and
        // both before the answer of a later command.
        self.link.run(&redis::cmd("PING")).await.unwrap();
        let mut found = Vec::new();
        while let Ok(message) = wakes.try_recv() {
            if message.kind != PushKind::PMessage {
                continue;
            }
            let [_, channel, payload]: [Value; 3] = message.data.try_into().unwrap();
            let channel = String::from_redis_value(channel).unwrap();
            let Value::BulkString(payload) = payload else { panic!("{payload:?}") };
            let (_, incarnation) = channel.split_once(":co:w:").unwrap();
            found.extend(read_wakeup(&payload, &IncarnationId::new(incarnation).unwrap()));
        }
        let wanted: Vec<_> = wanted.wakeup.iter().cloned().collect();
        prop_assert_eq!(found, wanted, "the wake-ups");
        Ok(())
    }

    async fn compare_state(&self, operation: &Operation) -> Result<(), TestCaseError> {
        let [live, ..] = self.space.turn(self.keys[0].as_str());
        let read = self.link.run(redis::cmd("HGETALL").arg(live)).await.unwrap();
        let mut sessions = BTreeMap::<String, String>::from_redis_value(read).unwrap();
        sessions.retain(|name, _| !name.starts_with('#') || name.len() > 2);
        let wanted: BTreeMap<_, _> = self
            .ledger
            .sessions
            .iter()
            .map(|(incarnation, session)| {
                let (expires, lease) = (session.expires_at.as_micros(), session.lease.as_micros());
                let (registered, epoch) = (session.registered_at.as_micros(), session.epoch);
                let row = format!("{expires}|{lease}|{registered}|{epoch}");
                (incarnation.as_str().to_owned(), row)
            })
            .collect();
        prop_assert_eq!(sessions, wanted, "the sessions after {:?}", operation);
        for key in &self.keys {
            let [_, turn, queue] = self.space.turn(key.as_str());
            let turn = self.link.run(redis::cmd("GET").arg(turn)).await.unwrap();
            let range =
                self.link.run(redis::cmd("LRANGE").arg(queue).arg(0).arg(-1)).await.unwrap();
            let queue = Vec::<String>::from_redis_value(range).unwrap();
            let record = self.ledger.records.get(key);
            let wanted: Vec<_> =
                record.into_iter().flat_map(|record| record.queue().map(write_ticket)).collect();
            prop_assert_eq!(queue, wanted, "the queue after {:?}", operation);
            let Some(turn) = Option::<String>::from_redis_value(turn).unwrap() else {
                prop_assert!(record.is_none(), "the record is missing after {:?}", operation);
                continue;
            };
            let (head, previous) = turn.split_once('\0').unwrap();
            let parts: Vec<&str> = head.splitn(4, '|').collect();
            let found = (parts[0].to_owned(), parts[3].to_owned(), previous.to_owned());
            let wanted = record.map(|record| {
                let holder = record.holder().map(write_ticket).unwrap_or_default();
                let previous = record.previous().map(|last| last.incarnation.as_str().to_owned());
                (record.fence().to_string(), holder, previous.unwrap_or_default())
            });
            let nothing = || ("0".to_owned(), String::new(), String::new());
            prop_assert_eq!(found, wanted.unwrap_or_else(nothing), "after {:?}", operation);
        }
        Ok(())
    }
}

/// A name with all that could be taken for a part of the format.
fn incarnation_of(who: usize, number: u64) -> IncarnationId {
    IncarnationId::new(format!("{who}|/{{}}\n-{number}#1")).unwrap()
}

fn differ(servers: &Servers, layout: Layout, cases: u32) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let granted = std::cell::Cell::new(0);
    let outcome = runner.run(&actions(), |actions| {
        runtime.block_on(async {
            let mut pair = Pair::new(servers.clone(), layout).await;
            for action in &actions {
                pair.act(action).await?;
            }
            granted.set(granted.get() + pair.granted);
            pair.wipe().await
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(granted.get() > cases * 3, "only {} grants in {cases} sequences", granted.get());
}

fn skip() {
    let required = std::env::var("BOTMESH_REQUIRE_BACKENDS").is_ok_and(|set| set == "1");
    assert!(!required, "the backend is absent, and BOTMESH_REQUIRE_BACKENDS=1 wants it");
    println!("skipped: the backend is absent");
}

/// C3: the scripts decide as the transition function does, from which the model check proves order
/// and exclusion.
#[test]
fn scripts_decide_as_the_transition_function_does() {
    match std::env::var("BOTMESH_TEST_REDIS_URL") {
        Ok(url) => differ(&Servers::single(url), Layout::Single, 100),
        Err(_) => skip(),
    }
}

/// C12: so they do on a cluster.
#[test]
fn scripts_decide_so_on_a_cluster_too() {
    match std::env::var("BOTMESH_TEST_REDIS_CLUSTER") {
        Ok(nodes) => {
            let nodes = nodes.split(',').map(str::to_owned).collect();
            differ(&Servers::cluster(nodes), Layout::Cluster, 20);
        }
        Err(_) => skip(),
    }
}

/// The shared comparison, over the backend as the client uses it.
fn agrees(servers: &Servers, layout: Layout, seeds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for seed in 0..seeds {
            let prefix = uuid::Uuid::new_v4().simple().to_string();
            let space = Keyspace::new(&prefix, layout).unwrap();
            let backend = RedisBackend::new(servers, space, differential::limits());
            differential::agrees(&backend, &differential::choices(seed, 300)).await.unwrap();
        }
    });
}

/// C3: the backend carries operations and answers as they are, by Redis's own clock.
#[test]
fn the_backend_agrees_with_the_function() {
    match std::env::var("BOTMESH_TEST_REDIS_URL") {
        Ok(url) => agrees(&Servers::single(url), Layout::Single, 20),
        Err(_) => skip(),
    }
}

/// C12: so it does on a cluster, where a session is many.
#[test]
fn the_backend_agrees_with_the_function_on_a_cluster() {
    match std::env::var("BOTMESH_TEST_REDIS_CLUSTER") {
        Ok(nodes) => {
            let nodes = nodes.split(',').map(str::to_owned).collect();
            agrees(&Servers::cluster(nodes), Layout::Cluster, 3);
        }
        Err(_) => skip(),
    }
}
