//! Callers that give up leave connections for the others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use botmesh_core::store::{Collection, DocumentStore as _};
use botmesh_postgres_store::{Pooler, PostgresStore};
use botmesh_test_support::giving_up::give_up_one_after_the_other;
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::wire::Wire;
use support::server::PrivateServer;

/// A store with two connections.
fn behind(proxy: &Proxy) -> PostgresStore {
    let store = PostgresStore::connect(proxy.url()).pooler(Pooler::Absent);
    store.max_connections(2).build().unwrap()
}

/// B7: callers that give up in the middle of statements leave the pool its connections: the answers
/// are waited for without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_give_up_in_the_middle_of_statements_cost_no_connection() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Postgres, server.port).await;
    PostgresStore::connect(server.url()).await.unwrap();
    let store = behind(&proxy);
    let ask = || store.load_document(Collection::Chats, "a");
    while proxy.connections() < 2 {
        let (one, other) = tokio::join!(ask(), ask());
        assert_eq!((one.unwrap(), other.unwrap()), (None, None));
    }
    assert_eq!(give_up_one_after_the_other(&store, &proxy).await, 2);
}

/// B7: a connection that is being opened when its caller gives up is the next one's: who gives up
/// sooner than a busy server opens a connection gets one all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_nobody_waits_for_is_opened_for_the_next() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let proxy = Proxy::start(Wire::Postgres, server.port).await;
    PostgresStore::connect(server.url()).await.unwrap();
    let store = behind(&proxy);
    assert_eq!(give_up_one_after_the_other(&store, &proxy).await, 1);
}
