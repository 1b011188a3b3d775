//! Where the server of the tests is, and private ones for what would disturb others.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[cfg(feature = "coordination")]
pub(crate) mod replica;
pub(crate) mod server;

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::store::CheckpointWrite;
use botmesh_mongo_store::{MongoStore, MongoStoreBuilder};
use mongodb::bson::Document;
use mongodb::{Client, Collection};

/// The database in which the tests meet, each under a prefix of its own.
pub(crate) const DATABASE: &str = "botmesh_tests";

/// The URL of the server.
pub(crate) fn url() -> Option<String> {
    std::env::var("BOTMESH_TEST_MONGO_URL").ok()
}

/// A store at the server. The server may be a slow stand-in on a busy machine, so answers have
/// time. Many tests share it, so each takes few connections.
pub(crate) fn store() -> Option<MongoStoreBuilder> {
    Some(patient(MongoStore::connect(url()?).database(DATABASE).max_connections(4)))
}

pub(crate) fn patient(builder: MongoStoreBuilder) -> MongoStoreBuilder {
    builder.patience(Duration::from_secs(60)).response_timeout(Duration::from_secs(30))
}

/// A client for what a test does behind the store's back.
pub(crate) async fn client(url: &str) -> Client {
    Client::with_uri_str(url).await.unwrap()
}

/// A collection of a store with this prefix.
pub(crate) async fn rows(prefix: &str, kind: &str) -> Collection<Document> {
    let client = client(&url().unwrap()).await;
    client.database(DATABASE).collection(&format!("{prefix}{kind}"))
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
