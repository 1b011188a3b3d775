use std::mem;

use parking_lot::Mutex;

use super::event::Activity;
use super::outbox::Outbox;
use super::writer::{Stored, Times};
use crate::error::BotError;
use crate::id::{Position, Revision};
use crate::store::{CheckpointChange, CheckpointWrite};

/// A record that is being processed, with the effects that are stored when it has come to its end.
pub(crate) struct OpenRecord {
    position: Position,
    outbox: Outbox,
    staged: Mutex<Staged>,
    failure: Mutex<Option<(Activity, BotError)>>,
}

/// What becomes of the chat's checkpoint.
#[derive(Default)]
pub(super) struct Staged {
    /// The revision of the checkpoint before the first change; none if there was no checkpoint.
    before: Option<Revision>,
    change: Option<Change>,
}

enum Change {
    Set { body: String, times: Times },
    Clear,
}

impl OpenRecord {
    pub(super) fn new(position: Position, outbox: Outbox) -> Self {
        let (staged, failure) = (Mutex::default(), Mutex::default());
        Self { position, outbox, staged, failure }
    }

    pub(super) const fn position(&self) -> Position {
        self.position
    }

    pub(super) const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// A checkpoint is to be written in place of `before`.
    pub(super) fn stage_write(&self, body: String, times: Times, before: Option<Stored>) -> Stored {
        self.staged.lock().stage(before, Change::Set { body, times });
        Stored::Staged
    }

    /// The checkpoint is to be removed.
    pub(super) fn stage_removal(&self, before: Stored) {
        self.staged.lock().stage(Some(before), Change::Clear);
    }

    pub(super) fn staged(&self) -> Staged {
        mem::take(&mut self.staged.lock())
    }

    /// The checkpoint that the store has, whatever is staged.
    pub(super) fn stored_before(&self) -> Option<Stored> {
        self.staged.lock().before.map(Stored::At)
    }

    /// Notes that a conversation could not go on: the record is to be processed again. What
    /// failed first counts.
    pub(super) fn fail(&self, during: Activity, error: BotError) {
        self.failure.lock().get_or_insert((during, error));
    }

    pub(super) fn failure(&self) -> Option<(Activity, BotError)> {
        self.failure.lock().take()
    }
}

impl Staged {
    fn stage(&mut self, before: Option<Stored>, change: Change) {
        if let (None, Some(Stored::At(revision))) = (&self.change, before) {
            self.before = Some(revision);
        }
        self.change = match change {
            // What was never written need not be removed.
            Change::Clear if self.before.is_none() => None,
            change => Some(change),
        };
    }

    pub(super) fn change(&self) -> CheckpointChange<'_> {
        match (&self.change, self.before) {
            (Some(Change::Set { body, times }), expected) => {
                let Times { wake_in, expires_in } = *times;
                CheckpointChange::Set {
                    write: CheckpointWrite { body, wake_in, expires_in },
                    expected,
                }
            }
            (Some(Change::Clear), Some(expected)) => CheckpointChange::Clear { expected },
            _ => CheckpointChange::Nothing,
        }
    }

    pub(super) const fn removes(&self) -> bool {
        matches!(self.change, Some(Change::Clear))
    }

    /// Whether the row that is to be replaced or removed may have expired meanwhile.
    pub(super) const fn may_have_expired(&self) -> bool {
        match &self.change {
            Some(Change::Set { times, .. }) => times.expires_in.is_some() && self.before.is_some(),
            Some(Change::Clear) => true,
            None => false,
        }
    }

    /// The row has expired: there is nothing to replace or to remove.
    pub(super) fn without_row(mut self) -> Self {
        self.before = None;
        self.change = self.change.filter(|change| matches!(change, Change::Set { .. }));
        self
    }
}
