use std::time::Duration;

use botmesh_redis_store::{RedisCoordinator, RedisStoreBuilder};
use botmesh_test_support::replica as any;

/// A replica that is not yet started.
pub(crate) fn replica_with(store: RedisStoreBuilder, lease: Duration) -> RedisCoordinator {
    let builder = RedisCoordinator::through(store).replica_id(any::id());
    builder.settings(any::settings(lease)).build().unwrap()
}

/// A started replica. All have the same id, which must not matter.
pub(crate) async fn replica(store: RedisStoreBuilder) -> RedisCoordinator {
    let replica = replica_with(store, any::LEASE);
    any::start(&replica).await;
    replica
}
