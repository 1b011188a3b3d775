//! Holding a turn or a leadership: a check before each effect, then the end.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::coordination::{ChatTurn, Leadership, SessionLease};

use super::Worker;
use super::workload::Ending;
use crate::history::{Call, Event, Nanos, nanos};

/// The pause between two checks, and how often one that passed is noted.
const STEP: Duration = Duration::from_millis(4);
const NOTED: Duration = Duration::from_millis(20);

/// What a turn and a leadership have in common.
pub(super) trait Guard: Send + Sync + Sized {
    fn fence(&self) -> u64;

    fn allows(&self) -> bool;

    fn release(self) -> impl Future<Output = bool> + Send;
}

/// What is held.
#[derive(Debug)]
pub(super) struct Held<G> {
    pub(super) guard: G,
    pub(super) session: Option<Arc<SessionLease>>,
    /// Before the last check that passed.
    pub(super) checked: Nanos,
    pub(super) held: bool,
}

impl Guard for ChatTurn {
    fn fence(&self) -> u64 {
        Self::fence(self).get()
    }

    fn allows(&self) -> bool {
        self.check().is_ok()
    }

    async fn release(self) -> bool {
        Self::release(self).await.is_ok()
    }
}

impl Guard for Leadership {
    fn fence(&self) -> u64 {
        Self::fence(self).get()
    }

    fn allows(&self) -> bool {
        self.check().is_ok()
    }

    async fn release(self) -> bool {
        Self::release(self).await.is_ok()
    }
}

impl Worker {
    /// Holds for a time and ends. Answers whether it could be held so long.
    pub(super) async fn keep<G: Guard>(
        &self,
        call: Call,
        mut held: Held<G>,
        hold: Duration,
        ending: Ending,
    ) -> bool {
        let begun = self.recorder.now();
        let mut noted = 0;
        let mut fine = held.held;
        while fine {
            let at = self.recorder.now();
            if !self.allows(&held.guard) {
                fine = false;
                break;
            }
            held.checked = at;
            let left = nanos(hold).saturating_sub(at - begun);
            if left == 0 {
                break;
            }
            if at - noted >= nanos(NOTED) && hold > NOTED {
                noted = at;
                let remaining = held.session.as_ref().map_or(0, |lease| nanos(lease.remaining()));
                self.recorder.note_at(at, Event::Effect { call, remaining });
            }
            tokio::time::sleep(STEP.min(Duration::from_nanos(left))).await;
        }
        if !fine {
            self.recorder.note(Event::Lost { call });
            return false;
        }
        self.recorder.note(Event::Release { call, checked: held.checked });
        match ending {
            Ending::Drop => drop(held),
            Ending::Release => {
                if held.guard.release().await {
                    self.recorder.note(Event::Released { call });
                }
            }
        }
        true
    }
}
