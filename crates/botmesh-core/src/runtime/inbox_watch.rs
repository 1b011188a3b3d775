use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::event::Activity;
use crate::provider::Provider;

/// So many chats are taken at a time.
const PAGE: usize = 500;
/// So many records are forgotten at a time.
const FORGET: usize = 500;
/// How often records are forgotten that need not be kept.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// What a bot with durability does beside its messages.
impl Runtime {
    /// Processes records that nobody looks after: of a process that died, of a turn that could not
    /// be had, of a dead letter that is replayed. Runs for as long as the bot does.
    pub(super) async fn look_after_records(self: Arc<Self>) {
        let Some((durable, _)) = self.durable() else { return };
        let lease = durable.lease;
        loop {
            let mut found_page = false;
            for provider in self.sender.providers() {
                found_page |= self.take_waiting(&**provider, lease).await;
            }
            tokio::select! {
                biased;
                () = durable.look.notified() => {}
                // What waits behind a full page has waited long enough; but there is to be room.
                () = self.lanes.room(), if found_page => {}
                () = tokio::time::sleep(lease / 3), if !found_page => {}
            }
        }
    }

    /// Puts the chats of a provider that wait to work; whether there may be more.
    async fn take_waiting(self: &Arc<Self>, provider: &dyn Provider, lease: Duration) -> bool {
        let Some((_, inbox)) = self.durable() else { return false };
        if self.sender.is_standby(provider.id()) {
            return false;
        }
        match inbox.take_waiting(provider.id(), lease, PAGE).await {
            Ok(chats) => {
                for chat in &chats {
                    self.lanes.drain(chat, self);
                }
                chats.len() >= PAGE
            }
            Err(error) => {
                self.events.error(None, Activity::Inbox, error);
                false
            }
        }
    }

    /// Removes what the inbox need not keep any longer, bit by bit.
    pub(super) async fn forget_records(self: Arc<Self>) {
        let Some((durable, inbox)) = self.durable() else { return };
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            loop {
                match inbox.forget(durable.settings.retention, FORGET).await {
                    Ok(forgotten) if forgotten >= FORGET => tokio::task::yield_now().await,
                    Ok(_) => break,
                    Err(error) => {
                        self.events.error(None, Activity::Inbox, error);
                        break;
                    }
                }
            }
        }
    }
}
