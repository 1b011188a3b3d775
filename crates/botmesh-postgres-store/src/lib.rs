#![doc = include_str!("../README.md")]

mod builder;
mod connections;
mod driver;
mod failure;
mod pooler;
mod protocol;
mod server;
mod settings;
mod store;

pub use botmesh_sql::PrefixError;
pub use builder::PostgresStoreBuilder;
pub use settings::Pooler;
pub use store::PostgresStore;
