use std::time::Duration;

use botmesh_mongo_store::{MongoCoordinator, MongoStoreBuilder};
use botmesh_test_support::replica as any;

/// The lease of the replicas of a test: longer than elsewhere, for the stand-in is slow.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A replica that is not yet started.
pub(crate) fn replica_with(store: MongoStoreBuilder, lease: Duration) -> MongoCoordinator {
    let builder = MongoCoordinator::through(store).replica_id(any::id());
    builder.settings(any::settings(lease)).build().unwrap()
}

/// A started replica. All have the same id, which must not matter.
pub(crate) async fn replica(store: MongoStoreBuilder) -> MongoCoordinator {
    let replica = replica_with(store, LEASE);
    any::start(&replica).await;
    replica
}
