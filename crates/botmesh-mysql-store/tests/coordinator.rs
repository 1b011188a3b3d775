//! The suite of coordinators on the server; each replica has a proxy of its own before it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::ReplicaId;
use botmesh_core::conformance::coordinator::{CoordinatorFixture, Replica};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_mysql_store::{MysqlCoordinator, MysqlStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::turnstile::{Pass, pass};
use botmesh_test_support::wire::Wire;

#[derive(Debug)]
struct Fixture {
    _pass: Pass,
}

impl Fixture {
    fn new() -> Self {
        Self { _pass: pass(8) }
    }
}

#[derive(Debug)]
struct MysqlReplica {
    coordinator: MysqlCoordinator,
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
        let (_, address) = url.rsplit_once(':')?;
        let port = address.split('/').next()?.parse().unwrap();
        let proxy = Proxy::start(Wire::Mysql, port).await;
        let store = MysqlStore::connect(proxy.url()).max_connections(4);
        let builder = MysqlCoordinator::through(store.prefix(prefix));
        let coordinator = builder.replica_id(replica).settings(settings).build().unwrap();
        Some(Arc::new(MysqlReplica { coordinator, proxy }))
    }
}

#[async_trait]
impl Replica for MysqlReplica {
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
        // There are none.
        true
    }
}

mod behind_a_proxy {
    botmesh_core::coordinator_conformance!(super::Fixture::new());
}
