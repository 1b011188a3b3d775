use std::time::Duration;

use super::problem::Problem;
use crate::id::ProviderId;
use crate::runtime::{DurabilitySettings, Durable, Uncertain};
use crate::store::Store;

/// What the bot does so that nothing it accepted is lost, and nothing is done twice.
///
/// ```
/// use std::time::Duration;
///
/// use botmesh_core::bot::{Durability, Uncertain};
/// # use botmesh_core::{Bot, MemoryStore, testing::TestProvider};
/// let durability = Durability::inbox_and_outbox()
///     .attempts(3)
///     .remember(Duration::from_secs(7 * 24 * 3600))
///     .uncertain(Uncertain::Skip);
/// # let store = MemoryStore::new();
/// let bot = Bot::new(TestProvider::new()).store(store).durability(durability);
/// ```
#[must_use = "give it to `Bot::durability`"]
#[derive(Debug, Clone)]
pub struct Durability {
    settings: DurabilitySettings,
}

impl Durability {
    /// Each message is written to the store's inbox before the platform is told that it was taken,
    /// and stays there until its effect is stored. What a handler or a flow sends while it
    /// processes a message is not sent again when the message has to be processed again.
    pub fn inbox_and_outbox() -> Self {
        Self { settings: DurabilitySettings::default() }
    }

    /// Only the ids of messages are kept, so that one which reaches two replicas is processed
    /// once. A message that could not be processed is new when the platform sends it again;
    /// one that was accepted is lost with the replica that had it.
    pub fn deduplication() -> Self {
        let lease = Some(Duration::from_secs(600));
        Self { settings: DurabilitySettings { journals: false, lease, ..Default::default() } }
    }

    /// How often a message is tried before it becomes a dead letter. Failures that pass by
    /// themselves, as of a platform or a store that is away, do not count. Default 5.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.settings.attempts = attempts;
        self
    }

    /// How long a chat waits after the first failed attempt, and at most; in between four times
    /// as long after each. Default 200 ms and 30 s.
    pub const fn retry(mut self, first: Duration, at_most: Duration) -> Self {
        self.settings.first_retry = first;
        self.settings.last_retry = at_most;
        self
    }

    /// How long a message is left to the replica that took it before others look after it.
    /// Default 15 s, and 2 s for a process without coordination; 10 min for
    /// [`deduplication`](Self::deduplication), where it must be longer than any message waits and
    /// is processed.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }

    /// How long the id of a message is known after it was processed: longer than the platform
    /// tries to deliver one. Default 48 h.
    pub const fn remember(mut self, time: Duration) -> Self {
        self.settings.retention.done = time;
        self
    }

    /// How long dead letters are kept. Default 30 days.
    pub const fn keep_dead_letters(mut self, time: Duration) -> Self {
        self.settings.retention.dead = time;
        self
    }

    /// How many messages of one chat may wait in the inbox; beyond that they are refused. Default
    /// 1,000.
    pub const fn max_pending_per_chat(mut self, messages: usize) -> Self {
        self.settings.max_pending_per_chat = messages;
        self
    }

    /// What is done about a send of which nobody knows whether the platform took it. Default
    /// [`Uncertain::Resend`].
    pub fn uncertain(mut self, policy: Uncertain) -> Self {
        self.settings.uncertain_default = policy;
        self
    }

    /// As [`uncertain`](Self::uncertain), for one provider.
    pub fn uncertain_on(mut self, provider: ProviderId, policy: Uncertain) -> Self {
        self.settings.uncertain.insert(provider, policy);
        self
    }

    pub(super) fn problems(&self, store: Option<&dyn Store>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let settings = &self.settings;
        for (setting, value) in [
            ("Durability::lease", settings.lease.unwrap_or(Duration::MAX)),
            ("Durability::retry", settings.first_retry),
            ("Durability::remember", settings.retention.done),
        ] {
            if value.is_zero() {
                problems.push(Problem::error(setting, "0 leaves no time: give a duration"));
            }
        }
        if settings.attempts == 0 {
            let text = "0 processes no message: allow at least 1";
            problems.push(Problem::error("Durability::attempts", text));
        }
        if settings.max_pending_per_chat == 0 {
            let text = "0 lets no message in: allow at least 1";
            problems.push(Problem::error("Durability::max_pending_per_chat", text));
        }
        if settings.first_retry > settings.last_retry {
            let text = "the first wait is longer than the longest: swap them";
            problems.push(Problem::error("Durability::retry", text));
        }
        let name = store.map_or("memory", Store::name);
        match store {
            Some(store) if store.inbox().is_none() => problems.push(Problem::error(
                "Bot::durability",
                format!("the store {name} has no inbox: use one that has, such as SQLite or Redis"),
            )),
            Some(store) if store.conditional_checkpoints().is_none() => {
                problems.push(Problem::error(
                    "Bot::durability",
                    format!(
                        "the store {name} has no compare-and-set for checkpoints: use one that has, such as SQLite or Redis"
                    ),
                ));
            }
            Some(store) if store.is_durable() => {}
            _ => problems.push(Problem::warning(
                "Bot::durability",
                format!(
                    "the store {name} forgets everything with this process: what was accepted is lost then"
                ),
            )),
        }
        problems
    }

    pub(super) fn into_durable(self, is_alone: bool) -> Durable {
        Durable::new(self.settings, is_alone)
    }
}
