//! Where the servers of the tests are, and private ones for what would disturb others.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[cfg(feature = "coordination")]
pub(crate) mod replica;
pub(crate) mod server;

use std::time::{Duration, Instant};

use botmesh_core::ChatKey;
use botmesh_core::store::CheckpointWrite;
use botmesh_mysql_store::{MysqlStore, MysqlStoreBuilder};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};

/// The URL of the server.
pub(crate) fn url() -> Option<String> {
    std::env::var("BOTMESH_TEST_MYSQL_URL").ok()
}

/// A store at the server. Many tests share the server, so each takes few connections.
pub(crate) fn direct() -> Option<MysqlStoreBuilder> {
    Some(MysqlStore::connect(url()?).max_connections(4))
}

/// A connection for what a test does behind the store's back.
pub(crate) async fn plain(url: &str) -> MySqlConnection {
    MySqlConnection::connect(url).await.unwrap()
}

/// Waits until a statement that begins so is being run on the common server.
pub(crate) async fn until_running(begins: &str) {
    let count =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE CONCAT(?, '%')";
    let mut behind = plain(&url().unwrap()).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while sqlx::query_scalar::<_, i64>(count).bind(begins).fetch_one(&mut behind).await.unwrap()
        == 0
    {
        assert!(Instant::now() < deadline, "{begins} is not run");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes a user without a password.
pub(crate) async fn user(server: &server::PrivateServer, name: &str, rights: &str) {
    let make = format!("CREATE USER {name}@'%'; GRANT {rights} TO {name}@'%'");
    server.connection().await.execute(sqlx::raw_sql(AssertSqlSafe(make))).await.unwrap();
}

/// Cuts the connections of a user, and tells how many they were.
pub(crate) async fn cut(behind: &mut MySqlConnection, user: &str) -> u32 {
    let which = "SELECT id FROM information_schema.processlist WHERE user = ?";
    let which: Vec<i64> =
        sqlx::query_scalar(which).bind(user).fetch_all(&mut *behind).await.unwrap();
    let mut cut = 0;
    for one in which {
        // One that has ended meanwhile is no failure.
        let killed = behind.execute(AssertSqlSafe(format!("KILL {one}"))).await;
        cut += u32::from(killed.is_ok());
    }
    cut
}

/// A prefix that no other test has.
pub(crate) fn prefix() -> String {
    format!("t{}_", &uuid::Uuid::new_v4().simple().to_string()[..12])
}

pub(crate) fn chat(name: &str) -> ChatKey {
    ChatKey::decode(&format!("test:{name}")).unwrap()
}

pub(crate) fn body(body: &str) -> CheckpointWrite<'_> {
    CheckpointWrite { body, wake_in: None, expires_in: None }
}

/// Tells that a test cannot run, and fails it where the backend must be there.
pub(crate) fn skip() {
    botmesh_test_support::absent::skip("the backend is absent");
}
