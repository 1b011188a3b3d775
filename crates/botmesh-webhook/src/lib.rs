#![doc = include_str!("../README.md")]

mod error;
mod health;
mod limits;
#[cfg(feature = "metrics")]
mod metrics;
mod router;
mod server;

pub use error::{ServeError, SettingsError};
pub use limits::{Limits, LimitsBuilder};
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use router::{WebhookRouter, router};
pub use server::{Server, ServerHandle};
