//! What can be fuzzed.

use crate::targets::{
    answer, chat_key, checkpoint, cron, message, raw_payload, record, saved_flow, telegram_answer,
    telegram_update, terminal, webhook,
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
    Target {
        name: "checkpoint",
        run: checkpoint::conversation,
        seeds: checkpoint::conversation_seeds,
    },
    Target { name: "cron", run: cron::run, seeds: cron::seeds },
    Target { name: "job", run: checkpoint::job, seeds: checkpoint::job_seeds },
    Target { name: "message", run: message::run, seeds: message::seeds },
    Target { name: "raw-payload", run: raw_payload::run, seeds: raw_payload::seeds },
    Target { name: "record-body", run: record::body, seeds: record::body_seeds },
    Target { name: "record-sends", run: record::sends, seeds: record::sends_seeds },
    Target { name: "saved-flow", run: saved_flow::run, seeds: saved_flow::seeds },
    Target { name: "telegram-answer", run: telegram_answer::run, seeds: telegram_answer::seeds },
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
