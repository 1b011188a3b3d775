use std::fmt;
use std::sync::Arc;

use botmesh_core::provider::Inbound;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::update::Recipient;

/// How many presses may wait for their answer; more are left to the client's own time-out.
const ANSWERS: usize = 1024;

/// Where updates go while the provider runs; empty otherwise.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Filled>);

#[derive(Default)]
struct Filled {
    run: u64,
    entrance: Option<Arc<Entrance>>,
}

/// Where the updates of one run go.
pub(crate) struct Entrance {
    pub(crate) inbound: Inbound,
    pub(crate) recipient: Recipient,
    answers: mpsc::Sender<String>,
}

/// Empties the slot when the run ends or is dropped.
pub(crate) struct Occupied<'a> {
    slot: &'a Slot,
    run: u64,
}

impl Entrance {
    /// An entrance, and the presses that are to be answered.
    pub(crate) fn new(inbound: Inbound, recipient: Recipient) -> (Self, mpsc::Receiver<String>) {
        let (answers, pressed) = mpsc::channel(ANSWERS);
        (Self { inbound, recipient, answers }, pressed)
    }

    /// Has the press answered, so that its button stops waiting.
    pub(crate) fn answer(&self, callback: &str) {
        if self.answers.try_send(callback.to_owned()).is_err() {
            tracing::debug!("too many presses wait for their answer");
        }
    }
}

impl Slot {
    pub(crate) fn present(&self) -> Option<Arc<Entrance>> {
        self.0.lock().entrance.clone()
    }

    pub(crate) fn fill(&self, entrance: Entrance) -> Occupied<'_> {
        let mut filled = self.0.lock();
        filled.run += 1;
        filled.entrance = Some(Arc::new(entrance));
        Occupied { slot: self, run: filled.run }
    }
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        let mut filled = self.slot.0.lock();
        // A later run may have filled it already.
        if filled.run == self.run {
            filled.entrance = None;
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", if self.present().is_some() { "filled" } else { "empty" })
    }
}
