//! One module a target, or two that are alike.

pub(crate) mod answer;
pub(crate) mod chat_key;
pub(crate) mod checkpoint;
pub(crate) mod cron;
pub(crate) mod message;
pub(crate) mod raw_payload;
pub(crate) mod record;
pub(crate) mod saved_flow;
mod stored;
pub(crate) mod telegram_answer;
pub(crate) mod telegram_update;
pub(crate) mod terminal;
pub(crate) mod webhook;
