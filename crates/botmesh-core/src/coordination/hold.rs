//! What a turn and a leadership have in common: the state that says whether the right still is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::error::LossReason;
use super::session::SessionLease;
use crate::id::{Fence, IncarnationId};

/// What a backend says when it grants a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// Grows with each grant of the key.
    pub fence: Fence,
    /// Who held the key before; none when the backend does not remember.
    pub previous: Option<PreviousHolder>,
}

/// The last holder of a key before this one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PreviousHolder {
    /// Its incarnation.
    pub incarnation: IncarnationId,
    /// The fence that it held.
    pub fence: Fence,
}

pub(super) struct Hold {
    pub(super) fence: Fence,
    pub(super) session: Option<Arc<SessionLease>>,
    ended: AtomicU8,
    wake: Notify,
}

impl Hold {
    pub(super) fn new(fence: Fence, session: Option<Arc<SessionLease>>) -> Self {
        Self { fence, session, ended: AtomicU8::new(0), wake: Notify::new() }
    }

    pub(super) fn end(&self, reason: LossReason) {
        let code = reason.encode();
        if self.ended.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.wake.notify_waiters();
        }
    }

    pub(super) fn loss(&self) -> Option<LossReason> {
        let own = LossReason::decode(self.ended.load(Ordering::Acquire));
        own.or_else(|| self.session.as_ref()?.loss())
    }

    pub(super) async fn lost(&self) -> LossReason {
        loop {
            let mut woken = std::pin::pin!(self.wake.notified());
            // Registered before the check, so that an end between the two is not missed.
            woken.as_mut().enable();
            if let Some(reason) = self.loss() {
                return reason;
            }
            match &self.session {
                None => woken.await,
                Some(session) => tokio::select! {
                    biased;
                    () = woken => {}
                    _ = session.ended() => {}
                },
            }
        }
    }
}
