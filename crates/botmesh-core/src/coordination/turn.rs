use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

use super::error::{LeaseLost, LossReason};
use crate::id::{ChatKey, Fence};

/// The exclusive right to process one chat, until it is dropped or lost.
#[must_use = "a turn ends when it is dropped"]
pub struct ChatTurn {
    state: Arc<TurnState>,
}

/// What work under a turn checks before each effect. Clones outlive the turn and then refuse.
#[derive(Clone)]
pub struct TurnGuard {
    state: Arc<TurnState>,
}

struct TurnState {
    key: ChatKey,
    fence: Fence,
    ended: AtomicU8,
    wake: Notify,
}

const LIVE: u8 = 0;

impl TurnState {
    fn end(&self, reason: LossReason) {
        let code = encode(reason);
        if self.ended.compare_exchange(LIVE, code, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.wake.notify_waiters();
        }
    }

    fn loss(&self) -> Option<LossReason> {
        decode(self.ended.load(Ordering::Acquire))
    }
}

impl ChatTurn {
    /// A turn of this process alone, whose caller has made sure that the chat has no other.
    pub fn local(key: ChatKey, fence: Fence) -> Self {
        let ended = AtomicU8::new(LIVE);
        Self { state: Arc::new(TurnState { key, fence, ended, wake: Notify::new() }) }
    }

    /// The chat.
    #[must_use]
    pub fn key(&self) -> &ChatKey {
        &self.state.key
    }

    /// Grows with each turn of this chat.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.fence
    }

    /// A guard to check before each effect.
    #[must_use]
    pub fn guard(&self) -> TurnGuard {
        TurnGuard { state: Arc::clone(&self.state) }
    }

    /// Ends the turn for `reason`: from now on its guards refuse.
    pub fn end(self, reason: LossReason) {
        self.state.end(reason);
    }
}

impl Drop for ChatTurn {
    fn drop(&mut self) {
        self.state.end(LossReason::Ended);
    }
}

impl TurnGuard {
    /// The chat.
    #[must_use]
    pub fn key(&self) -> &ChatKey {
        &self.state.key
    }

    /// The fence of the turn.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.fence
    }

    /// Whether effects are still allowed.
    ///
    /// # Errors
    /// [`LeaseLost`] when the turn has ended, for whatever reason.
    pub fn check(&self) -> Result<(), LeaseLost> {
        match self.state.loss() {
            None => Ok(()),
            Some(reason) => Err(self.lost_because(reason)),
        }
    }

    /// Ends the turn from within, as when a store refuses its fence.
    pub fn end(&self, reason: LossReason) {
        self.state.end(reason);
    }

    /// Waits until the turn has ended. Safe to cancel.
    pub async fn lost(&self) -> LeaseLost {
        loop {
            let mut woken = std::pin::pin!(self.state.wake.notified());
            // Registered before the check, so that an end between the two is not missed.
            woken.as_mut().enable();
            if let Some(reason) = self.state.loss() {
                return self.lost_because(reason);
            }
            woken.await;
        }
    }

    fn lost_because(&self, reason: LossReason) -> LeaseLost {
        LeaseLost::new(self.state.key.clone(), self.state.fence, reason)
    }
}

const fn encode(reason: LossReason) -> u8 {
    match reason {
        LossReason::Ended => 1,
        LossReason::Expired => 2,
        LossReason::Superseded => 3,
        LossReason::Settled => 4,
        LossReason::Stopped => 5,
    }
}

const fn decode(code: u8) -> Option<LossReason> {
    match code {
        LIVE => None,
        2 => Some(LossReason::Expired),
        3 => Some(LossReason::Superseded),
        4 => Some(LossReason::Settled),
        5 => Some(LossReason::Stopped),
        _ => Some(LossReason::Ended),
    }
}

impl fmt::Debug for ChatTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard().fmt(f)
    }
}

impl fmt::Debug for TurnGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("key", self.key())
            .field("fence", &self.fence())
            .field("ended", &self.state.loss())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ProviderId;

    fn turn() -> ChatTurn {
        let provider = ProviderId::new("test").unwrap();
        ChatTurn::local(ChatKey::new(&provider, "ana").unwrap(), Fence::new(7))
    }

    #[tokio::test]
    async fn a_guard_refuses_once_its_turn_was_dropped() {
        let turn = turn();
        let guard = turn.guard();
        assert_eq!(guard.check(), Ok(()));
        drop(turn);
        assert_eq!(guard.check().unwrap_err().reason, LossReason::Ended);
        assert_eq!(guard.lost().await.reason, LossReason::Ended);
    }

    #[tokio::test]
    async fn the_first_reason_for_a_loss_stays() {
        let turn = turn();
        let guard = turn.guard();
        let waiting = tokio::spawn({
            let guard = guard.clone();
            async move { guard.lost().await }
        });
        tokio::task::yield_now().await;
        guard.end(LossReason::Superseded);
        turn.end(LossReason::Stopped);
        assert_eq!(waiting.await.unwrap().reason, LossReason::Superseded);
    }
}
