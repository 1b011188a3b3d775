//! The shop on Telegram as real processes: by polling and by webhook, alone and as replicas.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod balancer;
mod capabilities;
mod durable;
mod pollers;
mod process;
mod replicas;
mod story;
mod terminal;
