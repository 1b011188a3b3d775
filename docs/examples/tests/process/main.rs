//! The examples as real processes: on a pipe, killed at any question, and in bad company.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod chat;
mod shop;
mod signup;
