//! Model check of the transition function of coordination: explores what replicas, a lossy
//! network, time and a failing backend can do together.
//!
//! `cargo test` explores a part. In full it is run by
//! `cargo test --profile model -p botmesh-core --features testing --test model`, and with
//! `BOTMESH_MODEL_STATES=50000000` for a night.

#![allow(unreachable_pub, reason = "nobody else uses a test binary")]
#![allow(clippy::expect_used, reason = "all of it is a test")]

mod healing;
mod protocol;
mod runs;
mod watching;
mod world;
