//! The suite of stores on the server, through the pooler, in a schema and over a shared pool.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::conformance::StoreFixture;
use botmesh_core::store::Store;
use botmesh_postgres_store::{PostgresStore, PostgresStoreBuilder};
use sqlx::postgres::PgPoolOptions;

#[derive(Debug)]
struct Fixture(fn(&str) -> Option<PostgresStoreBuilder>);

#[async_trait]
impl StoreFixture for Fixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        Some(Arc::new((self.0)(prefix)?.build().expect("the settings are good")))
    }
}

fn shared(prefix: &str) -> Option<PostgresStoreBuilder> {
    let pool = PgPoolOptions::new().max_connections(4).connect_lazy(&support::url()?).unwrap();
    Some(PostgresStore::over(pool).prefix(prefix))
}

mod direct {
    botmesh_core::store_conformance!(super::Fixture(|prefix| {
        Some(super::support::direct()?.prefix(prefix))
    }));
}

mod pooled {
    botmesh_core::store_conformance!(super::Fixture(|prefix| {
        Some(super::support::pooled()?.prefix(prefix))
    }));
}

mod in_a_schema {
    // Bots may also be told apart by their schemas alone.
    botmesh_core::store_conformance!(super::Fixture(|prefix| {
        Some(super::support::direct()?.schema(prefix))
    }));
}

mod over_a_shared_pool {
    botmesh_core::store_conformance!(super::Fixture(super::shared));
}
