use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{CoordinationError, LeaseLost, LossReason};
use super::hold::{Grant, Hold, PreviousHolder};
use super::release::Claim;
use super::session::SessionLease;
use super::ticket::Ticket;
use crate::id::{ChatKey, Fence, IncarnationId};

/// The exclusive right to process one chat, until it is dropped, released or lost.
///
/// Dropped, it stops allowing effects at once and gives the chat to the next in line as soon as
/// the coordinator's task gets to it; [`release`](ChatTurn::release) waits for that.
#[must_use = "a turn ends when it is dropped"]
pub struct ChatTurn {
    state: Arc<TurnState>,
    previous: Option<PreviousHolder>,
    // Given up after `drop` has ended the turn: guards refuse before another holder may begin.
    claim: Option<Claim>,
}

/// What work under a turn checks before each effect. Clones outlive the turn and then refuse.
#[derive(Clone)]
pub struct TurnGuard {
    state: Arc<TurnState>,
}

struct TurnState {
    key: ChatKey,
    hold: Hold,
    /// The number of its ticket; none when it is local.
    sequence: Option<u64>,
    /// Set while its end is on the way to the backend together with its last effect.
    is_closing: AtomicBool,
}

impl ChatTurn {
    /// A turn of this process alone, whose caller has made sure that the chat has no other.
    pub fn local(key: ChatKey, fence: Fence) -> Self {
        let state = Arc::new(TurnState::new(key, Hold::new(fence, None), None));
        Self { state, previous: None, claim: None }
    }

    /// The turn that a backend granted to `ticket`.
    pub fn granted(ticket: Ticket, grant: Grant) -> Self {
        let (key, claim) = ticket.into_parts();
        let hold = Hold::new(grant.fence, Some(Arc::clone(&claim.session)));
        let state = Arc::new(TurnState::new(key, hold, Some(claim.sequence)));
        Self { state, previous: grant.previous, claim: Some(claim) }
    }

    /// The chat.
    #[must_use]
    pub fn key(&self) -> &ChatKey {
        &self.state.key
    }

    /// Grows with each turn of this chat.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.state.hold.fence
    }

    /// The incarnation that holds this turn; none when it is local.
    #[must_use]
    pub fn incarnation(&self) -> Option<&IncarnationId> {
        self.claim.as_ref().map(|claim| claim.session.incarnation())
    }

    /// Who held the chat before; none when that is not known, and for a local turn.
    #[must_use]
    pub fn previous_holder(&self) -> Option<&IncarnationId> {
        self.previous.as_ref().map(|previous| &previous.incarnation)
    }

    /// The fence of the turn before this one; none when that is not known.
    #[must_use]
    pub fn previous_fence(&self) -> Option<Fence> {
        self.previous.as_ref().map(|previous| previous.fence)
    }

    /// Whether nobody had the chat since this process completed the turn with fence `last`, so
    /// that what it remembers of the chat is current. A local turn always continues.
    #[must_use]
    pub fn continues(&self, last: Fence) -> bool {
        match self.incarnation() {
            None => true,
            Some(own) => self
                .previous
                .as_ref()
                .is_some_and(|previous| previous.incarnation == *own && previous.fence == last),
        }
    }

    /// A guard to check before each effect.
    #[must_use]
    pub fn guard(&self) -> TurnGuard {
        TurnGuard { state: Arc::clone(&self.state) }
    }

    /// Whether effects are still allowed; see [`TurnGuard::check`].
    ///
    /// # Errors
    /// [`LeaseLost`] when the turn has ended, for whatever reason.
    pub fn check(&self) -> Result<(), LeaseLost> {
        self.state.check()
    }

    /// Waits until the turn has ended. Safe to cancel.
    pub async fn lost(&self) -> LeaseLost {
        self.state.lost().await
    }

    /// Ends the turn and waits until the backend has given the chat to the next in line. The chat
    /// is free in any case: what fails here is repaired by the coordinator.
    ///
    /// # Errors
    /// [`CoordinationError::Stopped`] when the coordinator stopped before it could confirm.
    pub async fn release(mut self) -> Result<(), CoordinationError> {
        self.state.hold.end(LossReason::Ended);
        match self.claim.take() {
            None => Ok(()),
            Some(claim) => claim.release().await,
        }
    }

    /// Ends the turn for `reason`: from now on its guards refuse.
    pub fn end(self, reason: LossReason) {
        self.state.hold.end(reason);
    }

    /// Ends a turn that the backend has ended already, if it has.
    pub(crate) fn end_if_closed(mut self) {
        if self.state.is_closing.load(Ordering::Acquire)
            && let Some(claim) = self.claim.take()
        {
            claim.forget();
        }
    }
}

impl Drop for ChatTurn {
    fn drop(&mut self) {
        self.state.hold.end(LossReason::Ended);
    }
}

impl TurnState {
    const fn new(key: ChatKey, hold: Hold, sequence: Option<u64>) -> Self {
        Self { key, hold, sequence, is_closing: AtomicBool::new(false) }
    }

    fn check(&self) -> Result<(), LeaseLost> {
        match self.hold.loss() {
            None if self.is_closing.load(Ordering::Acquire) => {
                Err(self.lost_because(LossReason::Ended))
            }
            None => Ok(()),
            Some(reason) => Err(self.lost_because(reason)),
        }
    }

    async fn lost(&self) -> LeaseLost {
        self.lost_because(self.hold.lost().await)
    }

    fn lost_because(&self, reason: LossReason) -> LeaseLost {
        LeaseLost::new(self.key.clone(), self.hold.fence, reason)
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
        self.state.hold.fence
    }

    /// Whether effects are still allowed. Cheap enough to call before each: no lock and no
    /// message to the backend.
    ///
    /// # Errors
    /// [`LeaseLost`] when the turn has ended, for whatever reason.
    pub fn check(&self) -> Result<(), LeaseLost> {
        self.state.check()
    }

    /// Why the turn was lost, if it was. Not refused while its end is on the way.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        self.state.hold.loss()
    }

    /// Refuses effects from now on, because the turn's end goes to the backend with the last of
    /// them; until [`reopen`](Self::reopen).
    pub(crate) fn close(&self) {
        self.state.is_closing.store(true, Ordering::Release);
    }

    /// The turn did not end: effects are allowed again.
    pub(crate) fn reopen(&self) {
        self.state.is_closing.store(false, Ordering::Release);
    }

    /// The ticket that it was granted to; none when it is local.
    pub(super) fn ticket(&self) -> Option<(&Arc<SessionLease>, u64)> {
        Some((self.state.hold.session.as_ref()?, self.state.sequence?))
    }

    /// Ends the turn from within, as when a store refuses its fence.
    pub fn end(&self, reason: LossReason) {
        self.state.hold.end(reason);
    }

    /// Waits until the turn has ended. Safe to cancel.
    pub async fn lost(&self) -> LeaseLost {
        self.state.lost().await
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
            .field("ended", &self.state.hold.loss())
            .finish()
    }
}

#[cfg(test)]
mod tests;
