//! The suite of stores on the server, and over a shared pool.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::conformance::StoreFixture;
use botmesh_core::store::Store;
use botmesh_mysql_store::{MysqlStore, MysqlStoreBuilder};
use sqlx::mysql::MySqlPoolOptions;

#[derive(Debug)]
struct Fixture(fn(&str) -> Option<MysqlStoreBuilder>);

#[async_trait]
impl StoreFixture for Fixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        Some(Arc::new((self.0)(prefix)?.build().expect("the settings are good")))
    }
}

fn shared(prefix: &str) -> Option<MysqlStoreBuilder> {
    let pool = MySqlPoolOptions::new().max_connections(4).connect_lazy(&support::url()?).unwrap();
    Some(MysqlStore::over(pool).prefix(prefix))
}

mod direct {
    botmesh_core::store_conformance!(super::Fixture(|prefix| {
        Some(super::support::direct()?.prefix(prefix))
    }));
}

mod over_a_shared_pool {
    botmesh_core::store_conformance!(super::Fixture(super::shared));
}
