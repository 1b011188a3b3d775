use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::key::CoordinationKey;
use super::release::{Claim, Releases};
use super::session::SessionLease;
use crate::id::ChatKey;

/// A reserved place in the queue of one chat. It is moved into
/// [`acquire_turn`](super::Coordinator::acquire_turn), so it is used once; dropped before that, the
/// place is given up.
#[must_use = "a ticket gives up its place when it is dropped"]
pub struct Ticket {
    chat: ChatKey,
    claim: Claim,
}

impl Ticket {
    /// A ticket that a coordinator reserved under `session`; dropped, it is left to `releases`.
    pub fn new(
        chat: ChatKey,
        session: Arc<SessionLease>,
        sequence: u64,
        releases: Releases,
    ) -> Self {
        let claim = Claim::new(CoordinationKey::from(&chat), session, sequence, releases);
        Self { chat, claim }
    }

    pub(super) const fn from_claim(chat: ChatKey, claim: Claim) -> Self {
        Self { chat, claim }
    }

    pub(super) const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// The chat.
    #[must_use]
    pub fn key(&self) -> &ChatKey {
        &self.chat
    }

    /// Its number: later reservations of the same coordinator have higher ones.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.claim.sequence
    }

    /// The lease under which it was reserved.
    #[must_use]
    pub fn session(&self) -> &Arc<SessionLease> {
        &self.claim.session
    }

    pub(super) fn into_parts(self) -> (ChatKey, Claim) {
        (self.chat, self.claim)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("key", &self.chat)
            .field("sequence", &self.sequence())
            .finish()
    }
}

/// How to wait for a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcquireTurn {
    /// The longest wait; none leaves it to the coordinator's `turn_wait`.
    pub wait: Option<Duration>,
}

impl AcquireTurn {
    /// Waits as long as the coordinator is set to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for `wait` at most.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }
}
