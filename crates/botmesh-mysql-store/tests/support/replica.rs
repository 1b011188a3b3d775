use std::time::Duration;

use botmesh_mysql_store::{MysqlCoordinator, MysqlStoreBuilder};
use botmesh_test_support::replica as any;

/// A replica that is not yet started.
pub(crate) fn replica_with(store: MysqlStoreBuilder, lease: Duration) -> MysqlCoordinator {
    let builder = MysqlCoordinator::through(store).replica_id(any::id());
    builder.settings(any::settings(lease)).build().unwrap()
}

/// A started replica. All have the same id, which must not matter.
pub(crate) async fn replica(store: MysqlStoreBuilder) -> MysqlCoordinator {
    let replica = replica_with(store, any::LEASE);
    any::start(&replica).await;
    replica
}
