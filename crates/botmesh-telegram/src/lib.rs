#![doc = include_str!("../README.md")]

mod address;
mod api;
mod builder;
mod error;
mod pace;
mod polling;
mod provider;
mod send;
mod session;
mod slot;
mod telegram;
#[cfg(feature = "testing")]
pub mod testing;
mod token;
mod trouble;
mod update;
mod webhook;

pub use builder::{PollingBuilder, WebhookBuilder};
pub use error::{CallError, SettingsError};
pub use telegram::Telegram;
pub use update::{Recipient, Update, UpdateError};
