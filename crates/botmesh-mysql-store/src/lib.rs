#![doc = include_str!("../README.md")]

mod builder;
mod connections;
mod driver;
mod failure;
mod migration;
mod protocol;
mod server;
mod settings;
mod store;

pub use botmesh_sql::PrefixError;
pub use builder::MysqlStoreBuilder;
pub use store::MysqlStore;
