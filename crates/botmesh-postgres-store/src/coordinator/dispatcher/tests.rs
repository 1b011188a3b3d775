use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use botmesh_core::LeaderName;
use botmesh_core::conformance::differential;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::{Backend as _, BackendError};
use botmesh_core::coordination::transition::{Operation, Reply, TicketId};
use botmesh_core::id::IncarnationId;
use botmesh_sql::Dialect;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::task::JoinSet;

use crate::PostgresStore;
use crate::coordinator::backend::PostgresBackend;
use crate::coordinator::tests::{store, url};

fn ticket(sequence: u64) -> TicketId {
    TicketId { incarnation: IncarnationId::new("r#1").unwrap(), sequence }
}

fn reserve(name: &str, sequence: u64) -> Operation {
    let key = LeaderName::new(name).unwrap().into();
    Operation::Reserve { key, ticket: ticket(sequence), epoch: 0 }
}

async fn backend(store: &PostgresStore) -> Arc<PostgresBackend> {
    let driver = store.sql.driver().clone();
    let limits = differential::limits();
    let backend = PostgresBackend::new(driver, None, limits, Duration::from_secs(5));
    backend.settle_here();
    let incarnation = IncarnationId::new("r#1").unwrap();
    let register = Operation::Register { incarnation, lease: Duration::from_secs(600) };
    assert!(matches!(backend.send(&register).await, Ok(Reply::Registered { .. })));
    Arc::new(backend)
}

/// Sends all at the same moment. Answers come in any order.
async fn send_all(
    backend: &Arc<PostgresBackend>,
    operations: impl IntoIterator<Item = Operation>,
) -> Vec<(Operation, Result<Reply, BackendError>)> {
    let mut sent = JoinSet::new();
    for operation in operations {
        let backend = Arc::clone(backend);
        sent.spawn(async move {
            let reply = backend.send(&operation).await;
            (operation, reply)
        });
    }
    sent.join_all().await
}

/// C3: of many operations that go together each has its own answer: free keys are granted, the
/// second on a key waits, and one that the server refuses spoils it for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_operations_has_its_own_answer() {
    let Some(url) = url() else { return };
    each_has_its_own_answer(&url, &url).await;
}

/// C3, C16: so it is through a pooler, where statements are not prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_operations_has_its_own_answer_through_a_pooler() {
    let Some(url) = url() else { return };
    let pooler = std::env::var("BOTMESH_TEST_POSTGRES_POOLER_URL").unwrap();
    each_has_its_own_answer(&pooler, &url).await;
}

/// `behind` leads to the server itself.
async fn each_has_its_own_answer(url: &str, behind: &str) {
    let store = store(url).await;
    let refuse = "CREATE FUNCTION {p}refuse() RETURNS TRIGGER LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON {p}coordination_turns FOR EACH ROW
            WHEN (NEW.name = 'lead:refused') EXECUTE FUNCTION {p}refuse()";
    let refuse = Dialect::POSTGRES.statement(refuse, store.sql.prefix()).text().to_string();
    let mut behind = PgConnection::connect(behind).await.unwrap();
    behind.execute(sqlx::raw_sql(AssertSqlSafe(refuse))).await.unwrap();
    let backend = backend(&store).await;
    let held = reserve("k7", 1);
    assert!(matches!(backend.send(&held).await, Ok(Reply::Granted(_))));
    for round in 0..10 {
        let first = 1_000 * (round + 1);
        let many = (0..200).map(|number| reserve(&format!("k{number}"), first + number));
        let answers = send_all(&backend, many.chain([reserve("refused", first + 900)])).await;
        let mut releases = Vec::new();
        for (operation, answer) in answers {
            let (key, ticket) = match &operation {
                Operation::Reserve { key, ticket, .. } => (key.clone(), ticket.clone()),
                other => panic!("{other:?}"),
            };
            match (key.as_str(), answer) {
                ("lead:k7", Ok(Reply::Queued { .. })) => {}
                (_, Ok(Reply::Granted(_))) => {}
                ("lead:refused", Err(BackendError::Refused(_))) => continue,
                (name, other) => panic!("{other:?} for {name}"),
            }
            releases.push(Operation::Release { key, ticket });
        }
        assert_eq!(releases.len(), 200);
        for (operation, answer) in send_all(&backend, releases).await {
            match (operation.key().unwrap().as_str(), answer) {
                ("lead:k7", Ok(Reply::Cancelled)) => {}
                (_, Ok(Reply::Released { next: None })) => {}
                (name, other) => panic!("{other:?} for {name}"),
            }
        }
    }
}

/// C4: an operation whose caller has given up before it was sent is not sent any more.
#[tokio::test(flavor = "current_thread")]
async fn what_nobody_waits_for_any_more_is_not_sent() {
    let Some(url) = url() else { return };
    let backend = backend(&store(&url).await).await;
    let given_up = reserve("k", 1);
    {
        let sending = backend.send(&given_up);
        tokio::pin!(sending);
        // On one thread nothing is sent before this gives way.
        assert!(poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await.is_pending());
    }
    let answer = backend.send(&reserve("k", 2)).await;
    assert!(matches!(answer, Ok(Reply::Granted(_))), "{answer:?}");
}

/// C4: when the runtime of the connections ends, whoever waits is told so.
#[test]
fn who_waits_is_told_when_the_runtime_ends() {
    let Some(url) = url() else { return };
    let other = tokio::runtime::Runtime::new().unwrap();
    let backend = other.block_on(async { backend(&store(&url).await).await });
    other.shutdown_timeout(Duration::from_secs(5));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(send_all(&backend, [reserve("k", 1)]));
    assert!(matches!(answer[..], [(_, Err(BackendError::Unknown(_)))]), "{answer:?}");
}

/// C3: many tickets on a few keys, which go together, wait in the order of their places: each release
/// grants to the next of its key, and no place is taken twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_competes_for_keys_is_decided_together_and_in_order() {
    const KEYS: u64 = 20;
    const TICKETS: u64 = 4;
    let Some(url) = url() else { return };
    let backend = backend(&store(&url).await).await;
    for round in 1..4 {
        let many = (0..KEYS * TICKETS)
            .map(|number| reserve(&format!("k{}", number % KEYS), round * 1_000 + number));
        let mut places: BTreeMap<CoordinationKey, BTreeMap<u32, TicketId>> = BTreeMap::new();
        for (operation, answer) in send_all(&backend, many).await {
            let Operation::Reserve { key, ticket, .. } = operation else { unreachable!() };
            let place = match answer {
                Ok(Reply::Granted(_)) => 0,
                Ok(Reply::Queued { ahead, .. }) => ahead,
                other => panic!("{other:?} for {key:?}"),
            };
            let taken = places.entry(key).or_default().insert(place, ticket);
            assert_eq!(taken, None, "two have the place {place}");
        }
        for place in 0..u32::try_from(TICKETS).unwrap() {
            let release = |(key, places): (&CoordinationKey, &BTreeMap<u32, TicketId>)| {
                Operation::Release { key: key.clone(), ticket: places[&place].clone() }
            };
            let releases: Vec<_> = places.iter().map(release).collect();
            for (operation, answer) in send_all(&backend, releases).await {
                let Ok(Reply::Released { next }) = answer else { panic!("{answer:?}") };
                let following = places[operation.key().unwrap()].get(&(place + 1));
                let next = next.map(|(sequence, _)| sequence);
                assert_eq!(next, following.map(|ticket| ticket.sequence), "{operation:?}");
            }
        }
    }
}
