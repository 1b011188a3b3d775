//! Asks for a place in a queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::backend::Backend;
use super::shared::{Live, Shared};
use crate::coordination::release::Claim;
use crate::coordination::transition::Reply;
use crate::coordination::{CoordinationError, CoordinationKey, LossReason};

impl<B: Backend> Shared<B> {
    /// Reserves a place in the queue of `key`.
    pub(super) async fn enter(
        &self,
        key: &CoordinationKey,
    ) -> Result<(Arc<Live>, Claim), CoordinationError> {
        let (live, claim, _) = self.ask(key, false).await?;
        Ok((live, claim))
    }

    /// Asks for `key` under the session that lives, or the next one if that turns out to be gone.
    pub(super) async fn ask(
        &self,
        key: &CoordinationKey,
        attempt: bool,
    ) -> Result<(Arc<Live>, Claim, Reply), CoordinationError> {
        let deadline = Instant::now() + self.settings.lease();
        loop {
            let live = self.session(deadline).await?;
            let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
            let session = Arc::clone(&live.lease);
            self.tickets.open(sequence, key.clone(), Arc::clone(&session), self.clock.now());
            // From here on a dropped future gives the ticket up.
            let claim = Claim::new(key.clone(), session, sequence, self.releases.clone());
            let reply = self.reserve(&live, key, sequence, attempt, deadline).await?;
            match &reply {
                Reply::Full { waiting } => {
                    self.tickets.answered(sequence);
                    let waiting = *waiting;
                    return Err(CoordinationError::Full { key: key.clone(), waiting });
                }
                Reply::NoSession => {
                    if Instant::now() >= deadline {
                        let reason = LossReason::Superseded;
                        return Err(CoordinationError::LeaseLost { key: key.clone(), reason });
                    }
                    continue;
                }
                reply => self.note_reply(&live, sequence, reply),
            }
            return Ok((live, claim, reply));
        }
    }

    /// Notes what a reservation was answered with.
    pub(super) fn note_reply(&self, live: &Live, sequence: u64, reply: &Reply) {
        match reply {
            Reply::Granted(grant) => {
                self.tickets.grant(&live.ticket(sequence), grant.clone());
            }
            Reply::Queued { remaining, .. } => self.tickets.queued(sequence, *remaining),
            _ => self.tickets.answered(sequence),
        }
    }
}
