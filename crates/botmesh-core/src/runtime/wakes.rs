use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::event::Activity;
use super::timer::{Wake, WakeReason};

/// How far ahead stored conversations are looked up, and how many at a time.
const HORIZON: Duration = Duration::from_secs(600);
const PAGE: usize = 1000;
const RETRY: Duration = Duration::from_secs(1);

impl Runtime {
    /// Wakes chats when their time comes; runs for as long as the bot does.
    pub(super) async fn run_timers(self: Arc<Self>) {
        loop {
            let wake = self.timers.due().await;
            self.lanes.wake(wake, &self);
        }
    }

    /// Looks up which stored conversations have to be woken, also those of an earlier process.
    pub(super) async fn rearm_stored_wakes(self: Arc<Self>) {
        loop {
            let again = match self.store.checkpoints_to_wake(HORIZON, PAGE).await {
                Err(error) => {
                    self.events.error(None, Activity::Checkpoint, error);
                    RETRY
                }
                Ok(due) => {
                    // A full page may not be all: look again when its last one has been woken.
                    let last = due.last().filter(|_| due.len() >= PAGE).map(|(_, after)| *after);
                    // Where there are replicas, the one that has the conversation in memory is
                    // to be first.
                    let later = if self.coordinated.is_some() { RETRY } else { Duration::ZERO };
                    for (chat, after) in due {
                        if !self.conversations.is_waiting(&chat) {
                            self.timers
                                .arm(after + later, Wake { chat, reason: WakeReason::Stored });
                        }
                    }
                    last.map_or(HORIZON / 2, |after| after.max(RETRY))
                }
            };
            tokio::time::sleep(again).await;
        }
    }
}
