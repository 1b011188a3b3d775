use std::time::Duration;

use botmesh_postgres_store::{PostgresCoordinator, PostgresStoreBuilder};
use botmesh_test_support::replica as any;

/// A replica that is not yet started.
pub(crate) fn replica_with(store: PostgresStoreBuilder, lease: Duration) -> PostgresCoordinator {
    let builder = PostgresCoordinator::through(store).replica_id(any::id());
    builder.settings(any::settings(lease)).build().unwrap()
}

/// A started replica. All have the same id, which must not matter.
pub(crate) async fn replica(store: PostgresStoreBuilder) -> PostgresCoordinator {
    let replica = replica_with(store, any::LEASE);
    any::start(&replica).await;
    replica
}
