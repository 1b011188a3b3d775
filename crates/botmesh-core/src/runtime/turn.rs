use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::open_record::OpenRecord;
use crate::coordination::TurnGuard;

/// What acts on a chat: the guard of its turn and, with durability, the record whose effect it is.
#[derive(Clone)]
pub(crate) struct Turn {
    guard: TurnGuard,
    record: Option<Arc<OpenRecord>>,
}

impl Turn {
    /// A turn whose effects are its own.
    pub(super) const fn new(guard: TurnGuard) -> Self {
        Self { guard, record: None }
    }

    /// A turn whose effects are stored at the end of `record`, all or none.
    pub(super) const fn of_record(guard: TurnGuard, record: Arc<OpenRecord>) -> Self {
        Self { guard, record: Some(record) }
    }

    pub(super) fn record(&self) -> Option<&OpenRecord> {
        self.record.as_deref()
    }

    /// Tells the conversations of a chat apart, and is the same whenever a record is processed
    /// again: the buttons that an earlier attempt showed stay good.
    pub(super) fn run_id(&self) -> u64 {
        self.record().map_or_else(|| self.guard.fence().get(), |record| record.position().get())
    }
}

impl Deref for Turn {
    type Target = TurnGuard;

    fn deref(&self) -> &TurnGuard {
        &self.guard
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
