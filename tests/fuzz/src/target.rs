//! What can be fuzzed.

use crate::targets::{
    answer, chat_key, cron, message, saved_flow, telegram_update, terminal, webhook,
};

/// One reader of bytes from outside.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Gives it one input. Panics when something is wrong.
    pub run: fn(&[u8]),
    /// Inputs to begin from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "answer", run: answer::run, seeds: answer::seeds },
    Target { name: "chat-key", run: chat_key::run, seeds: chat_key::seeds },
    Target { name: "cron", run: cron::run, seeds: cron::seeds },
    Target { name: "message", run: message::run, seeds: message::seeds },
    Target { name: "saved-flow", run: saved_flow::run, seeds: saved_flow::seeds },
    Target { name: "telegram-update", run: telegram_update::run, seeds: telegram_update::seeds },
    Target { name: "terminal", run: terminal::run, seeds: terminal::seeds },
    Target { name: "webhook", run: webhook::run, seeds: webhook::seeds },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.iter().find(|target| target.name == name).copied()
    }
}
