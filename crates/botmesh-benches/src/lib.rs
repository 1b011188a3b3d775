//! What the benches share: a platform without a network that feeds messages and takes replies, and
//! the bots that answer it.

pub mod coordination;
pub mod durability;
mod feed;
pub mod memory;
pub mod options;
pub mod peer;
pub mod replicas;
pub mod scaling;
pub mod spread;
pub mod stores;
pub mod table;
mod workload;

pub use feed::{Driver, Feed};
pub use workload::{Bench, Workload};
