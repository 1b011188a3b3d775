//! What tests of bots, stores and providers use (feature `testing`).

pub mod provider;

pub use provider::TestProvider;
