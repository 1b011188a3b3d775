use std::time::Duration;

use super::Runtime;
use crate::coordination::{LeaseLost, LossReason, TurnGuard};
use crate::error::BotError;
use crate::id::{Fence, Revision};
use crate::store::{CheckpointWrite, StoredCheckpoint, Swap};

/// What a checkpoint of a chat was found to be.
pub(super) struct Found {
    /// The checkpoint, if there is one.
    pub(super) checkpoint: Option<StoredCheckpoint>,
    /// The fence to write with from now on.
    pub(super) fence: Fence,
}

/// The only place that reads and writes checkpoints: first the guard of the turn, then
/// compare-and-set on revision and fence.
impl Runtime {
    /// Reads the checkpoint of the turn's chat and makes all earlier writers stale.
    pub(super) async fn adopt_checkpoint(&self, guard: &TurnGuard) -> Result<Found, BotError> {
        let chat = guard.key();
        let Some(store) = self.store.conditional_checkpoints() else {
            let checkpoint = self.store.load_checkpoint(chat).await?;
            return Ok(Found { checkpoint, fence: guard.fence() });
        };
        let mut fence = guard.fence();
        loop {
            let adopted = store.adopt_checkpoint(chat, fence).await?;
            match adopted.previous_fence {
                // An earlier process of this bot gave higher fences, as when the clock was set
                // back. There is no other holder: the process is alone with its chats.
                Some(seen) if seen > fence => {
                    self.fences.observe(seen);
                    fence = self.fences.next();
                }
                _ => return Ok(Found { checkpoint: adopted.checkpoint, fence }),
            }
        }
    }

    /// Writes the checkpoint of the turn's chat in place of `expected`.
    pub(super) async fn save_checkpoint(
        &self,
        guard: &TurnGuard,
        body: &str,
        wake_in: Option<Duration>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Revision, BotError> {
        guard.check()?;
        let chat = guard.key();
        let write = CheckpointWrite { body, wake_in, expires_in: None };
        let Some(store) = self.store.conditional_checkpoints() else {
            return Ok(self.store.set_checkpoint(chat, write, fence).await?);
        };
        match store.set_checkpoint_if(chat, write, expected, fence).await? {
            Swap::Applied(revision) => Ok(revision),
            Swap::Refused => Err(superseded(guard).into()),
        }
    }

    /// Removes the checkpoint of the turn's chat, unless a later holder has written it.
    pub(super) async fn clear_checkpoint(
        &self,
        guard: &TurnGuard,
        expected: Revision,
        fence: Fence,
    ) -> Result<(), BotError> {
        guard.check()?;
        let chat = guard.key();
        let Some(store) = self.store.conditional_checkpoints() else {
            return Ok(self.store.clear_checkpoint(chat).await?);
        };
        match store.clear_checkpoint_if(chat, expected, fence).await? {
            Swap::Applied(_) => Ok(()),
            Swap::Refused => Err(superseded(guard).into()),
        }
    }
}

/// A later holder was here: the turn is over for everything that still acts under it.
fn superseded(guard: &TurnGuard) -> LeaseLost {
    guard.end(LossReason::Superseded);
    LeaseLost::new(guard.key().clone(), guard.fence(), LossReason::Superseded)
}
