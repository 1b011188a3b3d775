//! The provider against a Bot API on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conformance;
mod fixture;
mod polling;
mod receiving;
mod sending;
mod stage;
mod webhook;
