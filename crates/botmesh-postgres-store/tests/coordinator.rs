//! The suite of coordinators on the server, and through the pooler, where tickets poll.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::ReplicaId;
use botmesh_core::conformance::coordinator::{CoordinatorFixture, Replica};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_core::store::Store;
use botmesh_postgres_store::{PostgresCoordinator, PostgresStore, PostgresStoreBuilder};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::turnstile::{Pass, pass};
use botmesh_test_support::wire::Wire;

#[derive(Debug)]
struct Fixture {
    store: fn() -> Option<PostgresStoreBuilder>,
    /// Each replica gets a proxy of its own before the server.
    proxied: bool,
    _pass: Pass,
}

impl Fixture {
    fn direct() -> Self {
        Self { store: support::direct, proxied: true, _pass: pass(8) }
    }

    fn pooled() -> Self {
        Self { store: support::pooled, proxied: false, _pass: pass(8) }
    }
}

#[derive(Debug)]
struct PostgresReplica {
    coordinator: PostgresCoordinator,
    store: PostgresStore,
    proxy: Option<Proxy>,
}

#[async_trait]
impl CoordinatorFixture for Fixture {
    async fn open(
        &self,
        prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let mut store = (self.store)()?;
        let mut proxy = None;
        if self.proxied {
            let url = support::url()?;
            let (_, address) = url.rsplit_once(':')?;
            let started =
                Proxy::start(Wire::Postgres, address.split('/').next()?.parse().unwrap()).await;
            store = PostgresStore::connect(started.url()).max_connections(4);
            proxy = Some(started);
        }
        let store = store.prefix(prefix).await.unwrap();
        let builder = store.coordinator().replica_id(replica).settings(settings);
        Some(Arc::new(PostgresReplica { coordinator: builder.build().unwrap(), store, proxy }))
    }
}

#[async_trait]
impl Replica for PostgresReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.coordinator
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.store.clone()))
    }

    async fn crash(&self) {
        self.coordinator.abandon();
    }

    async fn freeze(&self) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| {
            proxy.freeze(true);
            true
        })
    }

    async fn thaw(&self) {
        if let Some(proxy) = &self.proxy {
            proxy.freeze(false);
        }
    }

    async fn lose_pushes(&self) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| {
            proxy.lose_messages();
            true
        })
    }
}

mod direct {
    botmesh_core::coordinator_conformance!(super::Fixture::direct());
}

mod pooled {
    botmesh_core::coordinator_conformance!(super::Fixture::pooled());
}
