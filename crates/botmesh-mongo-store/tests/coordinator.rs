//! The suite of coordinators on the server, and on one without a replica set, where tickets poll.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::ReplicaId;
use botmesh_core::conformance::coordinator::{CoordinatorFixture, Replica};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_mongo_store::{MongoCoordinator, MongoStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::turnstile::{Pass, pass};
use botmesh_test_support::wire::Wire;

/// Each replica gets a proxy of its own before the server.
#[derive(Debug)]
struct Fixture(Pass);

#[derive(Debug)]
struct MongoReplica {
    coordinator: MongoCoordinator,
    proxy: Proxy,
}

#[async_trait]
impl CoordinatorFixture for Fixture {
    async fn open(
        &self,
        prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let url = support::url()?;
        let (_, port) = url.rsplit_once(':')?;
        let proxy = Proxy::start(Wire::Mongo, port.parse().unwrap()).await;
        let store = MongoStore::connect(proxy.url()).database(support::DATABASE);
        let store = store.max_connections(4).prefix(prefix);
        let builder = MongoCoordinator::through(store);
        let coordinator = builder.replica_id(replica).settings(settings).build().unwrap();
        Some(Arc::new(MongoReplica { coordinator, proxy }))
    }
}

#[async_trait]
impl Replica for MongoReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.coordinator
    }

    async fn crash(&self) {
        self.coordinator.abandon();
    }

    async fn freeze(&self) -> bool {
        self.proxy.freeze(true);
        true
    }

    async fn thaw(&self) {
        self.proxy.freeze(false);
    }

    async fn lose_pushes(&self) -> bool {
        self.proxy.lose_messages();
        true
    }
}

mod through_proxies {
    botmesh_core::coordinator_conformance!(super::Fixture(super::pass(4)));
}
