#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a target fails by panicking")]

mod memory;
pub mod mutation;
mod target;
mod targets;

pub use target::{TARGETS, Target};
