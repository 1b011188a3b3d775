//! What every layer's errors share.

/// A foreign error, kept as the source of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
