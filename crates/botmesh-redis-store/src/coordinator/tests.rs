//! The scripts against the transition function: the same operations at the same times give the
//! same answers, the same wake-ups and the same state.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::LeaderName;
use botmesh_core::conformance::told::{self, Moment, Told, ToldBackend};
use botmesh_core::conformance::{CaseError, differential};
use botmesh_core::coordination::transition::{
    Operation, ServerTime, Session, StoredSession, StoredTurn, TicketId, Wakeup,
};
use botmesh_core::coordination::{CoordinationKey, PreviousHolder};
use botmesh_core::id::{Fence, IncarnationId};
use botmesh_test_support::absent;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::{FromRedisValue, PushInfo, PushKind, Value};
use tokio::sync::mpsc::UnboundedReceiver;

use super::backend::RedisBackend;
use super::scripts::SCRIPTS_WITH_A_TOLD_CLOCK;
use super::wire::{decode, encode, read_wakeup};
use crate::RedisStore;
use crate::keys::{Keyspace, Layout};
use crate::link::{Kind, Link};
use crate::servers::{Connection, Servers};

/// Runs the scripts in which the clock is an argument.
struct ToldRedis {
    link: Link,
    space: Keyspace,
    keys: [CoordinationKey; 2],
    wakes: Option<UnboundedReceiver<PushInfo>>,
}

impl ToldRedis {
    async fn new(servers: Servers, layout: Layout) -> Self {
        let link = Link::new(servers, Kind::Listening);
        let prefix = uuid::Uuid::new_v4().simple().to_string();
        let space = Keyspace::new(&prefix, layout).unwrap();
        let key =
            |number: u32| CoordinationKey::from(LeaderName::new(format!("k|{number}")).unwrap());
        let bucket = |key: &CoordinationKey| space.turn_bucket(key);
        let second = (1..).map(key).find(|other| bucket(other) == bucket(&key(0))).unwrap();
        let open = link.connection().await.unwrap();
        let mut wakes = open.take_messages();
        match open.connection {
            Connection::Node(mut node) => {
                node.psubscribe(format!("{prefix}:co:w:*")).await.unwrap();
            }
            Connection::Cluster(_) => wakes = None,
        }
        Self { link, space, keys: [key(0), second], wakes }
    }

    async fn heard(&mut self) -> Option<Vec<Wakeup>> {
        let wakes = self.wakes.as_mut()?;
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
        Some(found)
    }
}

/// A ticket as the scripts keep it.
fn ticket(text: &str) -> TicketId {
    let (sequence, incarnation) = text.split_once('/').unwrap();
    let incarnation = IncarnationId::new(incarnation).unwrap();
    TicketId { incarnation, sequence: sequence.parse().unwrap() }
}

#[async_trait]
impl ToldBackend for ToldRedis {
    fn keys(&self) -> [CoordinationKey; 2] {
        self.keys.clone()
    }

    /// Its records expire by the server's clock.
    fn forgets(&self) -> bool {
        false
    }

    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError> {
        let call =
            encode(operation, &self.space, &told::limits(), &SCRIPTS_WITH_A_TOLD_CLOCK).unwrap();
        let keys = match &call.keys {
            Some(keys) => keys.to_vec(),
            None => self.space.turn(&self.keys[0])[..1].to_vec(),
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let (run, now) = (format!("{:x}", moment.run), moment.now.as_micros().to_string());
        let arguments = std::iter::once(&*run).chain(call.arguments.iter()).chain([&*now]);
        let arguments: Vec<&[u8]> = arguments.map(str::as_bytes).collect();
        let answer = self.link.evaluate(call.script, &keys, &arguments).await;
        let reply = decode(answer.expect("the script fails")).unwrap();
        Ok(Told { reply, wakeups: self.heard().await })
    }

    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError> {
        let [live, ..] = self.space.turn(&self.keys[0]);
        let read = self.link.run(redis::cmd("HGETALL").arg(live)).await.unwrap();
        let mut rows = BTreeMap::<String, String>::from_redis_value(read).unwrap();
        rows.retain(|name, _| !name.starts_with('#') || name.len() > 2);
        let session = |(name, row): (String, String)| {
            let numbers: Vec<u64> = row.split('|').map(|part| part.parse().unwrap()).collect();
            let session = Session {
                expires_at: ServerTime::from_micros(numbers[0]),
                lease: Duration::from_micros(numbers[1]),
                registered_at: ServerTime::from_micros(numbers[2]),
                epoch: u32::try_from(numbers[3]).unwrap(),
            };
            StoredSession { incarnation: IncarnationId::new(name).unwrap(), session }
        };
        Ok(rows.into_iter().map(session).collect())
    }

    async fn turn(
        &mut self,
        key: &CoordinationKey,
        _: Moment,
    ) -> Result<Option<StoredTurn>, CaseError> {
        let [_, turn, queue] = self.space.turn(key);
        let turn = self.link.run(redis::cmd("GET").arg(turn)).await.unwrap();
        let queue = self.link.run(redis::cmd("LRANGE").arg(queue).arg(0).arg(-1)).await.unwrap();
        let queue = Vec::<String>::from_redis_value(queue).unwrap();
        let Some(turn) = Option::<String>::from_redis_value(turn).unwrap() else {
            assert!(queue.is_empty(), "somebody waits for nothing");
            return Ok(None);
        };
        let (head, previous) = turn.split_once('\0').unwrap();
        let parts: Vec<&str> = head.splitn(4, '|').collect();
        let previous = (!previous.is_empty()).then(|| PreviousHolder {
            incarnation: IncarnationId::new(previous).unwrap(),
            fence: Fence::new(0),
        });
        Ok(Some(StoredTurn {
            holder: (!parts[3].is_empty()).then(|| ticket(parts[3])),
            fence: parts[0].parse().unwrap(),
            previous,
            queue: queue.iter().map(|text| ticket(text)).collect(),
            expires_at: ServerTime::default(),
        }))
    }

    async fn wipe(&mut self) -> Result<(), CaseError> {
        let names = self.keys.iter().flat_map(|key| self.space.turn(key));
        for name in names.collect::<Vec<_>>() {
            self.link.run(redis::cmd("DEL").arg(name)).await.unwrap();
        }
        Ok(())
    }

    async fn disturb(&mut self, _: Moment) -> Result<(), CaseError> {
        self.link.run(redis::cmd("SCRIPT").arg("FLUSH")).await.unwrap();
        Ok(())
    }
}

fn differ(servers: &Servers, layout: Layout, cases: u32) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let granted = std::cell::Cell::new(0);
    let choices = prop::collection::vec(any::<u8>(), 80..560);
    let outcome = runner.run(&choices, |choices| {
        runtime.block_on(async {
            let mut backend = ToldRedis::new(servers.clone(), layout).await;
            let grants = told::agrees(&mut backend, &choices).await;
            granted.set(granted.get() + grants.map_err(|e| TestCaseError::fail(e.to_string()))?);
            backend.wipe().await.map_err(|error| TestCaseError::fail(error.to_string()))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(granted.get() > cases * 3, "only {} grants in {cases} sequences", granted.get());
}

fn single() -> Option<Servers> {
    absent::server("BOTMESH_TEST_REDIS_URL").map(Servers::single)
}

fn cluster() -> Option<Servers> {
    let nodes = absent::server("BOTMESH_TEST_REDIS_CLUSTER")?;
    Some(Servers::cluster(nodes.split(',').map(str::to_owned).collect()))
}

/// C3: the scripts decide as the transition function does, from which the model check proves order
/// and exclusion.
#[test]
fn scripts_decide_as_the_transition_function_does() {
    if let Some(servers) = single() {
        differ(&servers, Layout::Single, 100);
    }
}

/// C12: so they do on a cluster.
#[test]
fn scripts_decide_so_on_a_cluster_too() {
    if let Some(servers) = cluster() {
        differ(&servers, Layout::Cluster, 20);
    }
}

/// The shared comparison, over the backend as the client uses it.
fn agrees(servers: &Servers, layout: Layout, seeds: u64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for seed in 0..seeds {
            let prefix = uuid::Uuid::new_v4().simple().to_string();
            let space = Keyspace::new(&prefix, layout).unwrap();
            let store = RedisStore::new(servers.clone(), space);
            let backend = RedisBackend::new(servers, store, differential::limits());
            differential::agrees(&backend, &differential::choices(seed, 300)).await.unwrap();
        }
    });
}

/// C3: the backend carries operations and answers as they are, by Redis's own clock.
#[test]
fn the_backend_agrees_with_the_function() {
    if let Some(servers) = single() {
        agrees(&servers, Layout::Single, 20);
    }
}

/// C12: so it does on a cluster, where a session is many.
#[test]
fn the_backend_agrees_with_the_function_on_a_cluster() {
    if let Some(servers) = cluster() {
        agrees(&servers, Layout::Cluster, 3);
    }
}
