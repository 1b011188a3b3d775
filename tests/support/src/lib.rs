//! What the tests of several stores share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod absent;
pub mod giving_up;
pub mod processing;
pub mod proxy;
pub mod records;
pub mod replica;
pub mod schema;
pub mod turnstile;
pub mod wire;
