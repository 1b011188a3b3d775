//! The coordinators that workers can be given.

use std::sync::Arc;

use anyhow::{Result, bail};
use botmesh_core::ReplicaId;
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use botmesh_mongo_store::MongoCoordinator;
use botmesh_mysql_store::MysqlCoordinator;
use botmesh_postgres_store::PostgresCoordinator;
use botmesh_redis_store::{RedisCoordinator, RedisStore};

/// The name under which sentinels know the master.
pub const MASTER: &str = "botmesh";

/// Makes a coordinator of a backend: `redis`, `postgres`, `mysql` or `mongo` with one URL, or `redis-sentinel` or
/// `redis-cluster` with the URLs of the sentinels or of nodes, separated by commas.
///
/// # Errors
/// When there is no such backend or its URL is refused.
pub fn open(
    backend: &str,
    url: &str,
    replica: ReplicaId,
    settings: CoordinatorSettings,
) -> Result<Arc<dyn Coordinator>> {
    let urls = url.split(',').map(str::to_owned);
    let builder = match backend {
        "postgres" => {
            let builder = PostgresCoordinator::connect(url).prefix("chaos_");
            let coordinator = builder.replica_id(replica).settings(settings).build()?;
            return Ok(Arc::new(coordinator));
        }
        "mysql" => {
            let builder = MysqlCoordinator::connect(url).prefix("chaos_");
            let coordinator = builder.replica_id(replica).settings(settings).build()?;
            return Ok(Arc::new(coordinator));
        }
        "mongo" => {
            let builder = MongoCoordinator::connect(url).prefix("chaos_");
            let coordinator = builder.replica_id(replica).settings(settings).build()?;
            return Ok(Arc::new(coordinator));
        }
        "redis" => RedisCoordinator::connect(url),
        "redis-sentinel" => RedisCoordinator::through(RedisStore::sentinel(urls, MASTER)),
        "redis-cluster" => RedisCoordinator::through(RedisStore::cluster(urls)),
        other => bail!("there is no backend {other}"),
    };
    let coordinator = builder.prefix("chaos").replica_id(replica).settings(settings).build()?;
    Ok(Arc::new(coordinator))
}
