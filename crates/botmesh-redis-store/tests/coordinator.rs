//! The suite of coordinators on a single server, on the master that Sentinel names and on a
//! cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::ReplicaId;
use botmesh_core::conformance::coordinator::{CoordinatorFixture, Replica};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_core::store::Store;
use botmesh_redis_store::{RedisCoordinator, RedisStore, RedisStoreBuilder};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::turnstile::{Pass, pass};
use botmesh_test_support::wire::Wire;

#[derive(Debug)]
struct Fixture {
    store: fn() -> Option<RedisStoreBuilder>,
    /// Each replica gets a proxy of its own before a single server.
    proxied: bool,
    _pass: Pass,
}

impl Fixture {
    fn single() -> Self {
        Self { store: support::single, proxied: true, _pass: pass(8) }
    }

    fn sentinel() -> Self {
        Self { store: support::sentinel, proxied: false, _pass: pass(8) }
    }

    fn cluster() -> Self {
        // A replica has a session in each of 128 buckets.
        Self { store: support::cluster, proxied: false, _pass: pass(3) }
    }
}

#[derive(Debug)]
struct RedisReplica {
    coordinator: RedisCoordinator,
    store: RedisStore,
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
            let started = Proxy::start(Wire::Redis, support::single_port()?).await;
            store = RedisStore::connect(started.url());
            proxy = Some(started);
        }
        let store = store.prefix(prefix).await.unwrap();
        let builder = store.coordinator().replica_id(replica).settings(settings);
        Some(Arc::new(RedisReplica { coordinator: builder.build().unwrap(), store, proxy }))
    }
}

#[async_trait]
impl Replica for RedisReplica {
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

mod single {
    botmesh_core::coordinator_conformance!(super::Fixture::single());
}

mod sentinel {
    botmesh_core::coordinator_conformance!(super::Fixture::sentinel());
}

mod cluster {
    botmesh_core::coordinator_conformance!(super::Fixture::cluster());
}
