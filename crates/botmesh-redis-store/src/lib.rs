#![doc = include_str!("../README.md")]

mod argument;
mod builder;
mod checkpoint;
mod coordinator;
mod document;
mod error;
mod inbox;
mod keys;
mod link;
mod lock;
mod pushes;
mod reply;
mod script;
mod server;
mod servers;
mod store;
mod words;

pub use builder::RedisStoreBuilder;
pub use coordinator::{RedisCoordinator, RedisCoordinatorBuilder};
pub use store::RedisStore;
