#![doc = include_str!("../README.md")]

mod builder;
mod connection;
mod driver;
mod error;
mod store;
mod writer;

pub use botmesh_sql::PrefixError;
pub use builder::{SqliteStoreBuilder, Synchronous};
pub use store::SqliteStore;
