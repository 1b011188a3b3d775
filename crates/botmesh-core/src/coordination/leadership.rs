use std::fmt;
use std::sync::Arc;

use super::error::{CoordinationError, LeadershipLost, LossReason};
use super::hold::{Grant, Hold};
use super::key::CoordinationKey;
use super::release::{Claim, Releases};
use super::session::SessionLease;
use crate::id::{Fence, LeaderName};

/// The exclusive right to lead something, until it is dropped, released or lost.
#[must_use = "a leadership ends when it is dropped"]
pub struct Leadership {
    name: LeaderName,
    hold: Arc<Hold>,
    claim: Option<Claim>,
}

impl Leadership {
    /// The leadership that a backend granted to the ticket `sequence` of `session`; given up, it
    /// is left to `releases`.
    pub fn granted(
        name: LeaderName,
        session: Arc<SessionLease>,
        sequence: u64,
        grant: &Grant,
        releases: Releases,
    ) -> Self {
        let claim = Claim::new(CoordinationKey::from(&name), session, sequence, releases);
        Self::from_claim(name, claim, grant)
    }

    pub(super) fn from_claim(name: LeaderName, claim: Claim, grant: &Grant) -> Self {
        let hold = Arc::new(Hold::new(grant.fence, Some(Arc::clone(&claim.session))));
        Self { name, hold, claim: Some(claim) }
    }

    /// What is led.
    #[must_use]
    pub fn name(&self) -> &LeaderName {
        &self.name
    }

    /// Grows with each leadership of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold.fence
    }

    /// The lease that the leadership lives on; none where nothing bounds it.
    pub(crate) fn lease(&self) -> Option<Arc<SessionLease>> {
        self.hold.session.clone()
    }

    /// Whether this replica still leads.
    ///
    /// # Errors
    /// [`LeadershipLost`] when the leadership has ended, for whatever reason.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        match self.hold.loss() {
            None => Ok(()),
            Some(reason) => Err(self.lost_because(reason)),
        }
    }

    /// Waits until the leadership has ended. Safe to cancel.
    pub async fn lost(&self) -> LeadershipLost {
        self.lost_because(self.hold.lost().await)
    }

    /// Resigns and waits until the backend has given the leadership to the next in line, who
    /// campaigns longest.
    ///
    /// # Errors
    /// [`CoordinationError::Stopped`] when the coordinator stopped before it could confirm.
    pub async fn release(mut self) -> Result<(), CoordinationError> {
        self.hold.end(LossReason::Ended);
        match self.claim.take() {
            None => Ok(()),
            Some(claim) => claim.release().await,
        }
    }

    fn lost_because(&self, reason: LossReason) -> LeadershipLost {
        LeadershipLost { name: self.name.clone(), fence: self.hold.fence, reason }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.hold.end(LossReason::Ended);
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("name", &self.name)
            .field("fence", &self.fence())
            .field("ended", &self.hold.loss())
            .finish()
    }
}
