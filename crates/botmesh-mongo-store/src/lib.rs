#![doc = include_str!("../README.md")]

mod builder;
mod checkpoint;
mod connections;
#[cfg(feature = "coordination")]
mod coordinator;
mod cursor;
mod document;
mod expression;
mod failure;
#[cfg(feature = "durability")]
mod inbox;
mod lock;
mod names;
mod row;
mod schema;
mod server;
mod settings;
mod store;

pub use builder::MongoStoreBuilder;
#[cfg(feature = "coordination")]
pub use coordinator::{MongoCoordinator, MongoCoordinatorBuilder};
pub use store::MongoStore;
