//! What the tests of several stores share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub mod processing;
pub mod proxy;
pub mod replica;
pub mod turnstile;
pub mod wire;
