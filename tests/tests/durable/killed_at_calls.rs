//! A process that kills itself before or behind one of its calls to the store.

use std::time::Duration;

use botmesh_telegram::testing::Call;
use botmesh_tests::durable::answers::Differences;
use botmesh_tests::durable::store::{Server, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::setting::{PATIENCE, Setting, shared};

const SAID: [&str; 3] = ["one", "two", "three"];
/// Comes behind all that might still be repeated.
const LAST: &str = "the end";
/// How many runs are under way at a time.
const AT_ONCE: usize = 4;
/// Of so many places one is tried, unless `BOTMESH_ALL_CRASH_POINTS` is set.
const STRIDE: usize = 3;
/// More places than any run passes.
const MOST: usize = 200;
/// A record of each message is admitted, begun and ended: fewer places would prove nothing.
const LEAST: usize = 10;

/// A conversation during which the first process dies at this place. Answers whether it died.
async fn dies(store: Store, at: usize) -> bool {
    let mut setting = Setting::new(store, Duration::ZERO).await;
    let chat = setting.platform.private(1);
    for words in SAID {
        chat.says(words);
    }
    let heard = || chat.heard().iter().map(Call::text).collect::<Vec<_>>();
    setting.dies_at = Some(at);
    let mut process = setting.poller("alone");
    // The one that is started anew is alone as well, and goes past all places.
    setting.dies_at = Some(usize::MAX);
    let (mut died, mut is_ending) = (false, false);
    let deadline = Instant::now() + PATIENCE;
    while !heard().iter().any(|heard| *heard == format!("re {LAST}")) {
        assert!(Instant::now() < deadline, "killed at {at}, it heard only {:?}", heard());
        if process.ended(Instant::now()).await {
            assert!(!died, "killed at {at}, it ended once more");
            died = true;
            process = setting.poller("alone");
        }
        if !is_ending && SAID.iter().all(|said| heard().contains(&format!("re {said}"))) {
            is_ending = true;
            chat.says(LAST);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let said: Vec<_> = SAID.iter().chain([&LAST]).map(|&words| words.to_owned()).collect();
    let found = Differences::find(&said, &heard());
    let most = usize::from(died);
    assert!(
        found.is_whole() && found.repeated.len() <= most,
        "killed at {at}: {found:?}: {:?}",
        heard()
    );
    assert_eq!(setting.store.dead_letters().await.unwrap(), [], "killed at {at}");
    died
}

/// Kills at one place after the other, until there are no more.
async fn is_killed_at_each(store: impl Fn(usize) -> Store) {
    let all = std::env::var_os("BOTMESH_ALL_CRASH_POINTS").is_some();
    let stride = if all { 1 } else { STRIDE };
    let mut places = (0..MOST).step_by(stride);
    let mut deaths = 0;
    loop {
        let mut runs = JoinSet::new();
        for at in places.by_ref().take(AT_ONCE) {
            runs.spawn(dies(store(at), at));
        }
        assert!(!runs.is_empty(), "a conversation has more than {MOST} places");
        let died: Vec<bool> = runs.join_all().await;
        deaths += died.iter().filter(|died| **died).count();
        if died.contains(&false) {
            break;
        }
    }
    println!("{deaths} processes were killed");
    assert!(deaths * stride >= LEAST, "{deaths} places");
}

async fn is_killed_at_each_on(server: Server, variable: &str) {
    if shared(server, variable).is_some() {
        is_killed_at_each(|_| shared(server, variable).unwrap()).await;
    }
}

/// G1, G3, G4, G7: a process that is killed at any of its calls to SQLite loses nothing that it had
/// accepted, keeps the order, and one answer at most comes twice.
#[tokio::test]
async fn a_kill_at_any_call_loses_nothing_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    is_killed_at_each(|at| Store::Sqlite { path: directory.path().join(format!("{at}.db")) }).await;
}

/// G1, G3, G4, G7: nor does one on Redis.
#[tokio::test]
async fn a_kill_at_any_call_loses_nothing_on_redis() {
    is_killed_at_each_on(Server::Redis, "BOTMESH_TEST_REDIS_URL").await;
}

/// G1, G3, G4, G7: nor does one on PostgreSQL.
#[tokio::test]
async fn a_kill_at_any_call_loses_nothing_on_postgres() {
    is_killed_at_each_on(Server::Postgres, "BOTMESH_TEST_POSTGRES_URL").await;
}

/// G1, G3, G4, G7: nor does one on MySQL or MariaDB.
#[tokio::test]
async fn a_kill_at_any_call_loses_nothing_on_mysql() {
    is_killed_at_each_on(Server::Mysql, "BOTMESH_TEST_MYSQL_URL").await;
}

/// G1, G3, G4, G7: nor does one on MongoDB.
#[tokio::test]
async fn a_kill_at_any_call_loses_nothing_on_mongo() {
    is_killed_at_each_on(Server::Mongo, "BOTMESH_TEST_MONGO_URL").await;
}
