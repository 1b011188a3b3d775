use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::Runtime;
use super::broken_rule::BrokenRule;
use super::conversing::Active;
use super::event::Activity;
use super::keeping::Keeping;
use super::timer::{Wake, WakeReason};
use crate::id::ChatKey;

/// How far ahead stored conversations are looked up: for twice as long as until the next look. A
/// process that is alone knows of all that it has written since its start.
const HORIZON_ALONE: Duration = Duration::from_secs(600);
/// With replicas: when one dies, the others know what it would have woken after half of this.
const HORIZON: Duration = Duration::from_secs(60);
/// So many are looked up at a time.
const PAGE: usize = 1000;
const RETRY: Duration = Duration::from_secs(1);
/// How long after a failure the store is asked for a conversation that was dropped from memory, and
/// how long after the first look at the store comes the second.
const AGAIN: Duration = Duration::from_secs(5);
/// Where there are replicas, the one that has a conversation in memory is to be first to wake it.
const OWNER_FIRST: Duration = Duration::from_secs(1);

impl Runtime {
    /// Wakes chats when their time comes; runs for as long as the bot does.
    pub(super) async fn run_timers(self: Arc<Self>) {
        let looks_first = self.coordinated.as_ref().is_some_and(|coordinated| {
            self.keeps_any() && !coordinated.breaks(BrokenRule::WakesWithoutTurn)
        });
        let mut looks = FuturesUnordered::new();
        loop {
            let wake = tokio::select! {
                biased;
                Some(meant) = looks.next(), if !looks.is_empty() => meant,
                wake = self.timers.due() => {
                    if looks_first {
                        looks.push(self.still_meant(wake));
                        continue;
                    }
                    Some(wake)
                }
            };
            if let Some(wake) = wake {
                self.lanes.wake(wake, &self);
            }
        }
    }

    /// Looks up which stored conversations have to be woken, also those of an earlier process.
    pub(super) async fn rearm_stored_wakes(self: Arc<Self>) {
        let alone = self.coordinated.is_none();
        let horizon = if alone { HORIZON_ALONE } else { HORIZON };
        // What a process that died had sent to the store may arrive after the first look.
        let mut longest = AGAIN;
        loop {
            let again = match self.store.checkpoints_to_wake(horizon, PAGE).await {
                Err(error) => {
                    self.events.error(None, Activity::Checkpoint, error);
                    RETRY
                }
                Ok(due) => {
                    // A full page may not be all: look again when its last one has been woken.
                    let last = due.last().filter(|_| due.len() >= PAGE).map(|(_, after)| *after);
                    for (chat, after) in due {
                        // What is in memory here wakes by itself, unless another replica has
                        // written an earlier moment since.
                        let by = Instant::now() + after + OWNER_FIRST;
                        let wakes = |active: &Active| alone || active.is_over_by(by);
                        if self.conversations.peek(&chat, wakes) != Some(true) {
                            self.wake_stored_in(&chat, after);
                        }
                    }
                    last.map_or(horizon / 2, |after| after.max(RETRY))
                }
            };
            tokio::select! {
                biased;
                () = self.look.notified() => {}
                () = tokio::time::sleep(again.min(longest)) => {}
            }
            longest = Duration::MAX;
        }
    }

    /// Wakes a chat for its stored conversation, whose time comes in `after`.
    pub(super) fn wake_stored_in(&self, chat: &ChatKey, after: Duration) {
        let later = if self.coordinated.is_some() { OWNER_FIRST } else { Duration::ZERO };
        self.timers.arm_stored(after.saturating_add(later), chat.clone());
    }

    /// The chat's conversation was dropped from memory, with its timers, where it could not go on:
    /// what the store has of it still has its moment.
    pub(super) fn wake_dropped(&self, chat: &ChatKey) {
        if self.keeps_any() {
            self.timers.arm_stored(AGAIN, chat.clone());
        }
    }

    /// A wake-up whose time has come, unless the store tells that another replica has moved the
    /// conversation on. It is asked without a turn, as a hint: a turn that is taken in vain makes
    /// stale what its owner has in memory.
    async fn still_meant(&self, wake: Wake) -> Option<Wake> {
        let Wake { chat, reason } = &wake;
        let own = self
            .conversations
            .peek(chat, |active| (active.is_meant(*reason), active.stored, active.number));
        let own = match (own, reason) {
            (_, WakeReason::Stored) => None,
            // Its turn may be under way.
            (None, _) => return Some(wake),
            // The timers of its present wait see to it.
            (Some((false, ..)), _) => return None,
            // It lives in memory only.
            (Some((true, None, _)), _) => return Some(wake),
            (Some((true, Some(stored), number)), _) => Some((stored, number)),
        };
        let Ok(found) = self.store.load_checkpoint(chat).await else { return Some(wake) };
        let left = found.as_ref().and_then(|checkpoint| checkpoint.wake_in);
        let meant = match (own, &found) {
            (None, _) => left.is_some_and(|left| left.is_zero()),
            (Some((stored, _)), Some(found)) => stored.is(found),
            // It may have expired at the very moment at which its wait ends.
            (Some((_, number)), None) => matches!(self.keeping_of(number), Keeping::Ephemeral(_)),
        };
        // A chat is woken where its platform is connected: the others put it aside, and look again
        // whether they are to do it.
        if meant && !self.sender.stands_by(chat) {
            return Some(wake);
        }
        if let Some((stored, _)) = own {
            let is_it = |active: &Active| active.is_meant(*reason) && active.stored == Some(stored);
            if let Some(mut stale) = self.conversations.take_if(chat, is_it) {
                stale.disarm(&self.timers);
            }
        }
        if let Some(left) = left {
            self.wake_stored_in(chat, left);
        }
        None
    }
}
