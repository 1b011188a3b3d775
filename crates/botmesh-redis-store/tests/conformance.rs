//! The suite of stores on a single server, on the master that Sentinel names and on a cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::conformance::StoreFixture;
use botmesh_core::store::Store;
use botmesh_redis_store::RedisStoreBuilder;

#[derive(Debug)]
struct Fixture(fn() -> Option<RedisStoreBuilder>);

#[async_trait]
impl StoreFixture for Fixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let store = (self.0)()?.prefix(prefix).build();
        Some(Arc::new(store.expect("the settings are good")))
    }
}

mod single {
    botmesh_core::store_conformance!(super::Fixture(super::support::single));
}

mod sentinel {
    botmesh_core::store_conformance!(super::Fixture(super::support::sentinel));
}

mod cluster {
    botmesh_core::store_conformance!(super::Fixture(super::support::cluster));
}
