//! The server over real sockets: what platforms, strangers and load balancers are answered.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answers;
mod client;
mod hostile;
mod load_balancer;
mod platform;
mod stopping;
