use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::broken_rule::BrokenRule;
use super::turn::Turn;
use crate::coordination::{LeaseLost, LossReason};
use crate::error::BotError;
use crate::id::{Fence, Revision};
use crate::store::{CheckpointWrite, ConditionalCheckpointStore, StoredCheckpoint, Swap};

/// The checkpoint that the store has of a conversation in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// The one with this revision.
    At(Revision),
    /// The one that is stored at the end of the record in work.
    Staged,
}

impl Stored {
    pub(super) fn is(self, checkpoint: &StoredCheckpoint) -> bool {
        self == Self::At(checkpoint.revision)
    }

    const fn revision(self) -> Option<Revision> {
        match self {
            Self::At(revision) => Some(revision),
            Self::Staged => None,
        }
    }
}

/// When a checkpoint wakes its conversation, and when it is gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) wake_in: Option<Duration>,
    pub(super) expires_in: Option<Duration>,
}

/// The only place that reads and writes checkpoints: first the guard of the turn, then
/// compare-and-set on revision and fence. The changes of a record are staged in it.
impl Runtime {
    /// Reads the checkpoint of the turn's chat and makes all earlier writers stale.
    pub(super) async fn adopt_checkpoint(
        &self,
        turn: &Turn,
    ) -> Result<Option<(StoredCheckpoint, Stored)>, BotError> {
        let chat = turn.key();
        let mut fence = self.fences.to_write(turn.fence());
        let checkpoint = match self.store.conditional_checkpoints() {
            None => self.store.load_checkpoint(chat).await?,
            Some(store) => loop {
                let adopted = store.adopt_checkpoint(chat, fence).await?;
                match adopted.previous_fence {
                    // An earlier process of this bot gave higher fences, as when the clock was
                    // set back. There is no other holder: the process is alone with its chats.
                    Some(seen) if seen > fence && self.coordinated.is_some() => {
                        return Err(self.superseded(turn).into());
                    }
                    Some(seen) if seen > fence => {
                        self.fences.observe(seen);
                        fence = self.fences.to_write(fence);
                    }
                    _ => break adopted.checkpoint,
                }
            },
        };
        Ok(checkpoint.map(|checkpoint| {
            let stored = Stored::At(checkpoint.revision);
            (checkpoint, stored)
        }))
    }

    /// Writes the checkpoint of the turn's chat in place of `before`.
    pub(super) async fn save_checkpoint(
        &self,
        turn: &Turn,
        body: String,
        times: Times,
        before: Option<Stored>,
    ) -> Result<Stored, BotError> {
        turn.check()?;
        let chat = turn.key();
        if let Some(record) = turn.record() {
            self.conversations.note_present(chat, self.absent_under(turn));
            return Ok(record.stage_write(body, times, before));
        }
        let fence = self.fences.to_write(turn.fence());
        if self.coordinated.as_ref().is_some_and(|it| it.breaks(BrokenRule::WritesAfterRelease)) {
            return Ok(self.write_later(turn, fence, body, times, before));
        }
        let Times { wake_in, expires_in } = times;
        let write = CheckpointWrite { body: &body, wake_in, expires_in };
        // Before the write: when its outcome stays open the row counts as there.
        self.conversations.note_present(chat, self.absent_under(turn));
        let Some(store) = self.store.conditional_checkpoints() else {
            return Ok(Stored::At(self.store.set_checkpoint(chat, write, fence).await?));
        };
        let expected = before.and_then(Stored::revision);
        let mut swap = store.set_checkpoint_if(chat, write, expected, fence).await?;
        if swap == Swap::Refused
            && expires_in.is_some()
            && expected.is_some()
            && has_expired(store, turn, fence).await?
        {
            turn.check()?;
            swap = store.set_checkpoint_if(chat, write, None, fence).await?;
        }
        match swap {
            Swap::Applied(revision) => Ok(Stored::At(revision)),
            Swap::Refused => Err(self.superseded(turn).into()),
        }
    }

    /// What [`BrokenRule::WritesAfterRelease`] does.
    fn write_later(
        &self,
        turn: &Turn,
        fence: Fence,
        body: String,
        times: Times,
        before: Option<Stored>,
    ) -> Stored {
        let (store, turn) = (Arc::clone(&self.store), turn.clone());
        tokio::spawn(async move {
            turn.lost().await;
            let Times { wake_in, expires_in } = times;
            let write = CheckpointWrite { body: &body, wake_in, expires_in };
            let expected = before.and_then(Stored::revision);
            if let Some(store) = store.conditional_checkpoints() {
                let _ = store.set_checkpoint_if(turn.key(), write, expected, fence).await;
            }
        });
        before.unwrap_or(Stored::At(Revision::new(0)))
    }

    /// Removes the checkpoint of the turn's chat, unless a later holder has written it.
    pub(super) async fn clear_checkpoint(
        &self,
        turn: &Turn,
        stored: Stored,
    ) -> Result<(), BotError> {
        turn.check()?;
        let chat = turn.key();
        if let Some(record) = turn.record() {
            record.stage_removal(stored);
            return Ok(());
        }
        let Some(revision) = stored.revision() else { return Ok(()) };
        match self.store.conditional_checkpoints() {
            None => self.store.clear_checkpoint(chat).await?,
            Some(store) => {
                let fence = self.fences.to_write(turn.fence());
                let swap = store.clear_checkpoint_if(chat, revision, fence).await?;
                if swap == Swap::Refused && !has_expired(store, turn, fence).await? {
                    return Err(self.superseded(turn).into());
                }
            }
        }
        self.conversations.note_absent(chat, self.absent_under(turn));
        Ok(())
    }

    /// A later holder was here: the turn is over for everything that still acts under it.
    fn superseded(&self, turn: &Turn) -> LeaseLost {
        turn.end(LossReason::Superseded);
        LeaseLost::new(turn.key().clone(), turn.fence(), LossReason::Superseded)
    }
}

/// Whether a write was refused because its row has expired: it is gone, and no later holder was
/// here. In memory the conversation lives on.
pub(super) async fn has_expired(
    store: &dyn ConditionalCheckpointStore,
    turn: &Turn,
    fence: Fence,
) -> Result<bool, BotError> {
    turn.check()?;
    let adopted = store.adopt_checkpoint(turn.key(), fence).await?;
    let overtaken = adopted.previous_fence.is_some_and(|seen| seen > fence);
    Ok(adopted.checkpoint.is_none() && !overtaken)
}
