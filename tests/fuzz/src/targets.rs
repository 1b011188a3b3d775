//! One module a target.

pub(crate) mod answer;
pub(crate) mod chat_key;
pub(crate) mod cron;
pub(crate) mod message;
pub(crate) mod saved_flow;
pub(crate) mod telegram_update;
pub(crate) mod terminal;
pub(crate) mod webhook;
