//! Jobs of several bots over real stores.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use botmesh_core::bot::{Coordination, RunningBot};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_core::schedule::{Misfire, StoreLeases, durable};
use botmesh_core::store::Store;
use botmesh_core::testing::TestProvider;
use botmesh_core::time::{Clock, Timestamp};
use botmesh_core::{Bot, BotError};
use botmesh_mongo_store::MongoStore;
use botmesh_mysql_store::MysqlStore;
use botmesh_postgres_store::PostgresStore;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;
use botmesh_test_support::absent;
use tokio::sync::watch;

const PERIOD: u64 = 10;
const WANTED: usize = 100;

/// How often each occurrence was run.
type Runs = Arc<watch::Sender<BTreeMap<Timestamp, u32>>>;

/// A bot whose job counts its occurrences, and whose clock is ahead.
fn bot(store: impl Store, runs: &Runs, ahead: u64) -> Bot {
    let now = Clock::system().now().plus(Duration::from_secs(ahead));
    let runs = Arc::clone(runs);
    let job = durable("tick").misfire(Misfire::CatchUp { most: 1_000_000 });
    Bot::new(TestProvider::new()).store(store).scheduler_clock(Clock::following_tokio(now)).every(
        Duration::from_millis(PERIOD),
        job,
        move |job| {
            runs.send_modify(|runs| *runs.entry(job.slot()).or_default() += 1);
            async { Ok::<_, BotError>(()) }
        },
    )
}

/// Waits for so many occurrences more.
async fn see(runs: &Runs, more: usize) {
    let count = runs.borrow().len() + more;
    let mut seen = runs.subscribe();
    let enough = seen.wait_for(|runs| runs.len() >= count);
    tokio::time::timeout(Duration::from_secs(60), enough)
        .await
        .expect("the job stands still")
        .unwrap();
}

/// One bot after the other is stopped or dies; the job goes on with the next.
async fn replace(mut replicas: Vec<RunningBot>, runs: &Runs) {
    see(runs, WANTED / 3).await;
    replicas.remove(0).stop().await;
    see(runs, WANTED / 3).await;
    // As if it was killed.
    drop(replicas.remove(0));
    see(runs, WANTED).await;
    for replica in replicas {
        replica.stop().await;
    }
    let runs = runs.borrow();
    let first = *runs.keys().next().unwrap();
    let slots: Vec<_> = runs.keys().copied().collect();
    let after =
        |number: usize| first.plus(Duration::from_millis(PERIOD) * u32::try_from(number).unwrap());
    let wanted: Vec<_> = (0..slots.len()).map(after).collect();
    assert_eq!(slots, wanted, "an occurrence was left out");
    // Of the replica that died, one may have been run and not noted.
    let repeated = runs.values().filter(|runs| **runs > 1).count();
    assert!(repeated <= 1, "{repeated} occurrences were run twice");
}

fn prefix() -> String {
    format!("j{}", &uuid::Uuid::new_v4().simple().to_string()[..10])
}

/// Three replicas, whose clocks are seconds apart, run each occurrence once. `open` opens the store and
/// the coordinator of one.
async fn is_run_once_by_replicas<S: Store, C: Coordinator + 'static>(
    open: impl AsyncFn(CoordinatorSettings) -> (S, C),
) {
    let runs = Runs::new(watch::Sender::default());
    let mut replicas = Vec::new();
    for ahead in [5, 0, 5] {
        let settings = CoordinatorSettings::builder().lease(Duration::from_millis(1500));
        let (store, coordinator) = open(settings.build().unwrap()).await;
        let bot = bot(store, &runs, ahead).coordination(Coordination::new(coordinator));
        replicas.push(bot.start().await.unwrap());
    }
    replace(replicas, &runs).await;
}

/// H1, H2, H3: three replicas on Redis, whose clocks are seconds apart, run each occurrence once.
#[tokio::test]
async fn each_occurrence_is_run_once_on_redis() {
    let Some(url) = absent::server("BOTMESH_TEST_REDIS_URL") else { return };
    let prefix = prefix();
    is_run_once_by_replicas(async |settings| {
        let store = RedisStore::connect(&url).prefix(&*prefix).await.unwrap();
        let coordinator = store.coordinator().settings(settings).build().unwrap();
        (store, coordinator)
    })
    .await;
}

/// H1, H2, H3: so they do on PostgreSQL.
#[tokio::test]
async fn each_occurrence_is_run_once_on_postgres() {
    let Some(url) = absent::server("BOTMESH_TEST_POSTGRES_URL") else { return };
    let prefix = format!("{}_", prefix());
    is_run_once_by_replicas(async |settings| {
        let store = PostgresStore::connect(&url).prefix(&*prefix).max_connections(4).await.unwrap();
        let coordinator = store.coordinator().settings(settings).build().unwrap();
        (store, coordinator)
    })
    .await;
}

/// H1, H2, H3: so they do on MySQL.
#[tokio::test]
async fn each_occurrence_is_run_once_on_mysql() {
    let Some(url) = absent::server("BOTMESH_TEST_MYSQL_URL") else { return };
    let prefix = format!("{}_", prefix());
    is_run_once_by_replicas(async |settings| {
        let store = MysqlStore::connect(&url).prefix(&*prefix).max_connections(4).await.unwrap();
        let coordinator = store.coordinator().settings(settings).build().unwrap();
        (store, coordinator)
    })
    .await;
}

/// H1, H2, H3: so they do on MongoDB.
#[tokio::test]
async fn each_occurrence_is_run_once_on_mongo() {
    let Some(url) = absent::server("BOTMESH_TEST_MONGO_URL") else { return };
    let prefix = format!("{}_", prefix());
    is_run_once_by_replicas(async |settings| {
        let store = MongoStore::connect(&url).database("botmesh_tests").prefix(&*prefix);
        let store = store.max_connections(4).await.unwrap();
        let coordinator = store.coordinator().settings(settings).build().unwrap();
        (store, coordinator)
    })
    .await;
}

/// H1, H2: two processes on one SQLite file share its locks.
#[tokio::test]
async fn each_occurrence_is_run_once_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let runs = Runs::new(watch::Sender::default());
    let mut replicas = Vec::new();
    for ahead in [5, 0] {
        let store = SqliteStore::open(&path).await.unwrap();
        let bot = bot(store.clone(), &runs, ahead).scheduler_lease(StoreLeases::new(store));
        replicas.push(bot.start().await.unwrap());
    }
    see(&runs, WANTED).await;
    for replica in replicas {
        replica.stop().await;
    }
    let runs = runs.borrow();
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    let (first, last) = (runs.keys().next().unwrap(), runs.keys().last().unwrap());
    let span = last.since(*first).as_millis();
    assert_eq!(span, u128::from(PERIOD) * (runs.len() as u128 - 1), "an occurrence was left out");
}
