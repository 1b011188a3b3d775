#![doc = include_str!("../README.md")]

mod builder;
mod connections;
#[cfg(feature = "coordination")]
mod coordinator;
mod driver;
mod failure;
mod migration;
mod protocol;
mod server;
mod settings;
mod store;

pub use botmesh_sql::PrefixError;
pub use builder::MysqlStoreBuilder;
#[cfg(feature = "coordination")]
pub use coordinator::{MysqlCoordinator, MysqlCoordinatorBuilder};
pub use store::MysqlStore;
