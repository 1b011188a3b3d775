//! Bots to read, to run and to test: what the examples share with their tests.
//!
//! Each example is a file beside this directory; `cargo run --example hello` runs one.

pub mod backend;
pub mod shop;
pub mod signup;

/// The code of the README and of the guide, which is compiled and run as doc tests.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../guide/getting-started.md")]
    mod getting_started {}
    #[doc = include_str!("../../guide/flows.md")]
    mod flows {}
    #[doc = include_str!("../../guide/conversations.md")]
    mod conversations {}
    #[doc = include_str!("../../guide/testing.md")]
    mod testing {}
    #[doc = include_str!("../../guide/replicas.md")]
    mod replicas {}
    #[doc = include_str!("../../guide/durability.md")]
    mod durability {}
    #[doc = include_str!("../../guide/scheduler.md")]
    mod scheduler {}
    #[doc = include_str!("../../guide/telegram.md")]
    mod telegram {}
    #[doc = include_str!("../../guide/platforms.md")]
    mod platforms {}
    #[doc = include_str!("../../guide/stores.md")]
    mod stores {}
}
