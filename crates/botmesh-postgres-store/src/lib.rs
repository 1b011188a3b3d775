#![doc = include_str!("../README.md")]

mod builder;
mod connections;
#[cfg(feature = "coordination")]
mod coordinator;
mod driver;
mod failure;
#[cfg(feature = "durability")]
mod group;
#[cfg(feature = "durability")]
mod inbox;
#[cfg(any(feature = "coordination", feature = "durability"))]
mod lines;
mod pooler;
mod protocol;
mod server;
mod settings;
mod store;

pub use botmesh_sql::PrefixError;
pub use builder::PostgresStoreBuilder;
#[cfg(feature = "coordination")]
pub use coordinator::{PostgresCoordinator, PostgresCoordinatorBuilder};
pub use settings::Pooler;
pub use store::PostgresStore;
