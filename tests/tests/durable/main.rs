//! Bots with durability as real processes, which are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod chaos;
mod killed_at_calls;
mod polling;
mod setting;
mod webhook;
