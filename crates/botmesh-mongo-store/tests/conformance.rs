//! The suite of stores, through a client of the store's own and through one of the program.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::conformance::StoreFixture;
use botmesh_core::store::Store;
use botmesh_mongo_store::MongoStore;

#[derive(Debug)]
struct Own;

#[async_trait]
impl StoreFixture for Own {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let store = support::store()?.prefix(prefix).build();
        Some(Arc::new(store.expect("the settings are good")))
    }
}

/// With writes that are not confirmed and reads from anywhere, as far as the program is concerned.
#[derive(Debug)]
struct Shared;

#[async_trait]
impl StoreFixture for Shared {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let url =
            format!("{}/?w=0&readPreference=secondary&readConcernLevel=local", support::url()?);
        let database = support::client(&url).await.database(support::DATABASE);
        let store = support::patient(MongoStore::over(database)).prefix(prefix).build();
        Some(Arc::new(store.expect("the settings are good")))
    }
}

mod own_client {
    botmesh_core::store_conformance!(super::Own);
}

mod shared_client {
    botmesh_core::store_conformance!(super::Shared);
}
