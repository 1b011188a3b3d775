//! Where the servers of the tests are, and private ones for what would disturb others.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[cfg(feature = "coordination")]
pub(crate) mod replica;
pub(crate) mod server;
pub(crate) mod small_disk;

use botmesh_core::ChatKey;
use botmesh_core::store::CheckpointWrite;
use botmesh_postgres_store::{PostgresStore, PostgresStoreBuilder};
use sqlx::{Connection as _, PgConnection};

/// The URL of the server.
pub(crate) fn url() -> Option<String> {
    std::env::var("BOTMESH_TEST_POSTGRES_URL").ok()
}

/// The URL of the pooler before it.
pub(crate) fn pooler_url() -> Option<String> {
    std::env::var("BOTMESH_TEST_POSTGRES_POOLER_URL").ok()
}

/// A store at the server. Many tests share the server, so each takes few connections.
pub(crate) fn direct() -> Option<PostgresStoreBuilder> {
    Some(PostgresStore::connect(url()?).max_connections(4))
}

/// A store at the pooler.
pub(crate) fn pooled() -> Option<PostgresStoreBuilder> {
    Some(PostgresStore::connect(pooler_url()?).max_connections(4))
}

/// A connection for what a test does behind the store's back.
pub(crate) async fn plain(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
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
