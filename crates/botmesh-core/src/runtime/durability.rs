use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Runtime;
use super::hashed::{ChatHasher, HashedChat, HashedMap, SHARDS};
use super::outbox::Uncertain;
use crate::id::{ChatKey, ProviderId};
use crate::store::{InboxStore, Retention};

/// What durability was set to.
#[derive(Debug, Clone)]
pub(crate) struct DurabilitySettings {
    /// Whether the messages themselves are kept, and not only their ids.
    pub(crate) journals: bool,
    pub(crate) attempts: u32,
    /// None for what suits the bot.
    pub(crate) lease: Option<Duration>,
    pub(crate) first_retry: Duration,
    pub(crate) last_retry: Duration,
    pub(crate) max_pending_per_chat: usize,
    pub(crate) retention: Retention,
    pub(crate) uncertain: HashMap<ProviderId, Uncertain>,
    pub(crate) uncertain_default: Uncertain,
}

/// What a bot with durability has beside the rest.
pub(crate) struct Durable {
    pub(super) settings: DurabilitySettings,
    pub(super) lease: Duration,
    pub(super) gates: Gates,
    /// Asks for a look at what waits in the inbox.
    pub(super) look: Notify,
}

/// One gate for each chat of which messages are being admitted: they pass in the order in which
/// they came.
pub(super) struct Gates {
    shards: Box<[Mutex<Shard>]>,
    hasher: ChatHasher,
}

type Shard = HashedMap<HashedChat, Arc<tokio::sync::Mutex<()>>>;

/// How long records are left to the replica that took them, and to a process that is alone.
const LEASE: Duration = Duration::from_secs(15);
const LEASE_ALONE: Duration = Duration::from_secs(2);

impl Default for DurabilitySettings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3600);
        Self {
            journals: true,
            attempts: 5,
            lease: None,
            first_retry: Duration::from_millis(200),
            last_retry: Duration::from_secs(30),
            max_pending_per_chat: 1_000,
            retention: Retention { done: 48 * HOUR, dead: 30 * 24 * HOUR },
            uncertain: HashMap::new(),
            uncertain_default: Uncertain::default(),
        }
    }
}

impl Durable {
    pub(crate) fn new(settings: DurabilitySettings, is_alone: bool) -> Self {
        // A process that is alone looks after records of its own only when it was started again.
        let suited = if is_alone { LEASE_ALONE } else { LEASE };
        let lease = settings.lease.unwrap_or(suited);
        Self { settings, lease, gates: Gates::new(), look: Notify::new() }
    }

    /// What is done about uncertain sends to this chat.
    pub(super) fn uncertain(&self, chat: &ChatKey) -> &Uncertain {
        let of = self.settings.uncertain.iter().find(|(id, _)| id.as_str() == chat.provider());
        of.map_or(&self.settings.uncertain_default, |(_, policy)| policy)
    }

    /// How long a chat waits before the attempt after these many that failed.
    pub(super) fn retry_in(&self, failed: u32) -> Duration {
        let factor = 4_u32.saturating_pow(failed.saturating_sub(1).min(10));
        self.settings.first_retry.saturating_mul(factor).min(self.settings.last_retry)
    }
}

impl Gates {
    fn new() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { shards, hasher: ChatHasher::default() }
    }

    pub(super) fn gate(&self, chat: &ChatKey) -> Arc<tokio::sync::Mutex<()>> {
        let chat = self.hasher.chat(chat);
        let mut shard = self.shards[chat.shard()].lock();
        Arc::clone(shard.entry(chat).or_default())
    }

    /// Forgets the gate of a chat if nobody stands before it. The caller has let go of its own.
    pub(super) fn leave(&self, chat: &ChatKey) {
        let chat = self.hasher.chat(chat);
        let mut shard = self.shards[chat.shard()].lock();
        if shard.get(&chat).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            shard.remove(&chat);
        }
    }
}

impl Runtime {
    /// The inbox, and what it is used with, of a bot with durability.
    pub(super) fn durable(&self) -> Option<(&Durable, &dyn InboxStore)> {
        Some((self.durable.as_ref()?, self.store.inbox()?))
    }

    /// Whether messages are kept, and not only their ids.
    pub(super) fn journals(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.settings.journals)
    }

    /// The inbox of a bot with durability.
    pub(crate) fn inbox(&self) -> Option<&dyn InboxStore> {
        self.durable().map(|(_, inbox)| inbox)
    }

    /// Has what waits in the inbox looked for now.
    pub(crate) fn look_for_records(&self) {
        if let Some(durable) = &self.durable {
            durable.look.notify_one();
        }
    }
}
