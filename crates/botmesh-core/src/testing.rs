//! What tests of bots, stores and providers use (feature `testing`).
