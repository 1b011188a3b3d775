//! The examples as chats, without a terminal and without a clock.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod shop;
mod signup;
