//! The rows against the transition function: the same operations at the same times give the same
//! answers, the same wake-ups and the same state, whether by a shortcut or by the function itself.

use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::LeaderName;
use botmesh_core::conformance::told::{self, Moment, Told, ToldBackend};
use botmesh_core::conformance::{CaseError, differential};
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::Backend as _;
use botmesh_core::coordination::stored::{Change, LedgerStore as _, Write};
use botmesh_core::coordination::transition::{
    Operation, Reply, StoredSession, StoredTurn, TicketId,
};
use botmesh_core::id::IncarnationId;
use botmesh_test_support::absent;
use mongodb::bson::doc;

use super::backend::MongoBackend;
use super::clock::Clock;
use super::schema::{self, SPACE, TURNS};
use super::wire::long;
use crate::MongoStore;

/// Longer than the stand-in takes on a busy machine.
const RESPONSE: Duration = Duration::from_secs(30);
/// So many sequences of operations are compared. The stand-in is slow.
const SEQUENCES: u64 = 12;

/// Runs the operations by a clock that is told.
struct ToldMongo(MongoBackend);

impl ToldMongo {
    fn tell(&self, moment: Moment) {
        let told = (Clock::Told(moment.now), format!("{:x}", moment.run));
        *self.0.rows().clock.lock() = told;
    }
}

fn violation(error: impl std::fmt::Display) -> CaseError {
    CaseError::Violation(error.to_string())
}

#[async_trait]
impl ToldBackend for ToldMongo {
    fn keys(&self) -> [CoordinationKey; 2] {
        ["$k.0", "$k.1"].map(|name| LeaderName::new(name).unwrap().into())
    }

    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError> {
        self.tell(moment);
        let outcome = self.0.decide(operation).await.map_err(violation)?;
        Ok(Told { reply: outcome.reply, wakeups: Some(outcome.wakeup.into_iter().collect()) })
    }

    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError> {
        let snapshot = self.0.rows().read(None).await.map_err(violation)?;
        Ok(snapshot.space.state.sessions)
    }

    async fn turn(
        &mut self,
        key: &CoordinationKey,
        moment: Moment,
    ) -> Result<Option<StoredTurn>, CaseError> {
        let turn = self.0.rows().read(Some(key)).await.map_err(violation)?.turn;
        Ok((turn.revision > 0 && turn.state.expires_at > moment.now).then_some(turn.state))
    }

    async fn wipe(&mut self) -> Result<(), CaseError> {
        for kind in [SPACE, TURNS] {
            let rows = self.0.rows().store.connections().collection(kind).await.unwrap();
            rows.delete_many(doc! {}).await.map_err(violation)?;
        }
        Ok(())
    }

    /// Deletes what has expired, as the server does a day later.
    async fn disturb(&mut self, moment: Moment) -> Result<(), CaseError> {
        let expired = doc! { "expires_at": { "$lte": long(moment.now.as_micros()) } };
        let rows = self.0.rows().turns().await.map_err(violation)?;
        rows.delete_many(expired).await.map(drop).map_err(violation)
    }
}

async fn store() -> Option<MongoStore> {
    let url = absent::server("BOTMESH_TEST_MONGO_URL")?;
    let prefix = format!("t{}_", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let store = MongoStore::connect(url).database("botmesh_tests").prefix(prefix);
    let store = store.patience(RESPONSE).response_timeout(RESPONSE).max_connections(4);
    let store = store.build().unwrap();
    schema::prepare(&store).await.unwrap();
    Some(store)
}

/// C3, C16: shortcuts and rows decide as the transition function does, from which the model check
/// proves order and exclusion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_decide_as_the_transition_function_does() {
    let Some(store) = store().await else { return };
    let mut granted = 0;
    for seed in 0..SEQUENCES {
        let mut backend = ToldMongo(MongoBackend::new(store.clone(), told::limits(), RESPONSE));
        let choices = differential::choices(seed, 100);
        let grants = told::agrees(&mut backend, &choices).await;
        granted += grants.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(u64::from(granted) > SEQUENCES * 3, "only {granted} grants");
}

/// C3, C16: the backend carries operations and answers as they are, by the server's own clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_backend_agrees_with_the_function() {
    for seed in 0..3 {
        let Some(store) = store().await else { return };
        let backend = MongoBackend::new(store, differential::limits(), RESPONSE);
        differential::agrees(&backend, &differential::choices(seed, 200)).await.unwrap();
    }
}

fn ticket(incarnation: &IncarnationId, sequence: u64) -> TicketId {
    TicketId { incarnation: incarnation.clone(), sequence }
}

/// C4, C7: a reservation that arrives after its ticket was given up takes nothing, neither by the
/// shortcut nor by a write of the rows, so no key is held by nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_that_arrives_after_its_release_takes_nothing() {
    let Some(store) = store().await else { return };
    let backend = MongoBackend::new(store, differential::limits(), RESPONSE);
    let key: CoordinationKey = LeaderName::new("k").unwrap().into();
    let own = IncarnationId::new("a#1").unwrap();
    let lease = Duration::from_secs(600);
    let register = Operation::Register { incarnation: own.clone(), lease };
    assert!(matches!(backend.send(&register).await.unwrap(), Reply::Registered { .. }));
    let reserve = |sequence| Operation::Reserve {
        key: key.clone(),
        ticket: ticket(&own, sequence),
        epoch: 0,
    };
    let release =
        |sequence| Operation::Release { key: key.clone(), ticket: ticket(&own, sequence) };
    // So that the row is there, and free.
    assert!(matches!(backend.send(&reserve(1)).await.unwrap(), Reply::Granted(_)));
    assert_eq!(backend.send(&release(1)).await.unwrap(), Reply::Released { next: None });

    // Each is dropped before it gets an answer, at another moment.
    for sequence in 2..30 {
        let time = Duration::from_micros(sequence * 200);
        let reserve = reserve(sequence);
        let lost = tokio::time::timeout(time, backend.send(&reserve)).await;
        let released = backend.send(&release(sequence)).await.unwrap();
        let expected = matches!(released, Reply::Released { next: None } | Reply::NotHolder);
        assert!(expected, "{sequence}: {released:?} after {lost:?}");
    }
    // What is sent again stands for what arrives late.
    let late = ticket(&own, 40);
    backend.doubt(&late);
    assert_eq!(backend.send(&release(40)).await.unwrap(), Reply::NotHolder);
    let limits = differential::limits();
    let taken = backend.rows().reserve(&key, &late, true, &limits).await.unwrap();
    assert_eq!(taken, None, "taken late");
    // And one that was decided on the rows.
    let begun = backend.rows().read(Some(&key)).await.unwrap().turn;
    assert_eq!(backend.send(&release(41)).await.unwrap(), Reply::NotHolder);
    let state = StoredTurn { holder: Some(ticket(&own, 41)), ..begun.state };
    let write = Write { expected: begun.revision, next: begun.revision + 1, state: &state };
    let change = Change { space: None, turn: Some((&key, write)) };
    assert!(!backend.rows().write(change).await.unwrap(), "written late");

    assert!(matches!(backend.send(&reserve(42)).await.unwrap(), Reply::Granted(_)));
}

/// C15: a chat that is remembered costs one operation before its message is handled and one after,
/// whether somebody waits or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_costs_two_operations() {
    let Some(store) = store().await else { return };
    let backend = MongoBackend::new(store, differential::limits(), RESPONSE);
    let key: CoordinationKey = LeaderName::new("k").unwrap().into();
    let lease = Duration::from_secs(600);
    let [one, other] = ["a#1", "b#1"].map(|name| IncarnationId::new(name).unwrap());
    for incarnation in [one.clone(), other.clone()] {
        backend.send(&Operation::Register { incarnation, lease }).await.unwrap();
    }
    let (rows, limits) = (backend.rows(), differential::limits());
    let reserve = async |ticket: &TicketId| {
        let reserved = rows.reserve(&key, ticket, true, &limits).await.unwrap();
        reserved.map(|outcome| outcome.reply)
    };
    let first = ticket(&one, 1);
    assert_eq!(reserve(&first).await, None, "the row may have been wiped");
    let asked = Operation::Reserve { key: key.clone(), ticket: first, epoch: 0 };
    assert!(matches!(backend.send(&asked).await.unwrap(), Reply::Granted(_)));
    for sequence in 1..4 {
        let (held, next) = (ticket(&one, sequence), ticket(&other, sequence));
        let queued = reserve(&next).await;
        assert!(matches!(queued, Some(Reply::Queued { ahead: 1, .. })), "{queued:?}");
        let released = rows.release(&key, &held, &limits).await.unwrap().expect("in one");
        assert_eq!(released.wakeup.map(|wakeup| wakeup.ticket), Some(next.clone()));
        let released = rows.release(&key, &next, &limits).await.unwrap().expect("in one");
        assert_eq!(released.reply, Reply::Released { next: None });
        let granted = reserve(&ticket(&one, sequence + 1)).await;
        let Some(Reply::Granted(grant)) = granted else { panic!("{granted:?}") };
        assert_eq!(grant.previous.map(|previous| previous.incarnation), Some(other.clone()));
    }
}
