//! What one process did and saw, one line for each event, written so that a kill loses nothing.
//!
//! A moment that begins something (`reserve`, `release`) is taken before it is begun, and one that
//! ends something (`reserved`, `granted`) after it was seen, so that the true moment lies between.

mod clock;
mod line;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use botmesh_core::coordination::PreviousHolder;

pub use clock::{Clock, nanos};
pub use line::{read, write};

/// A number that a process gives to each ticket and each campaign; events name it.
pub type Call = u64;

/// Nanoseconds of the clock that all processes of a run share.
pub type Nanos = u64;

/// One event with its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Nanos,
    /// What.
    pub event: Event,
}

/// What a worker did or saw, or what the driver did to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A worker has its first session. The first line of its history.
    Started {
        /// The id of the replica.
        replica: String,
        /// Its lease in milliseconds.
        lease: u64,
    },
    /// A place in the queue of a key will be asked for.
    Reserve {
        /// Which ticket.
        call: Call,
        /// The key.
        key: String,
    },
    /// The ticket was acknowledged.
    Reserved {
        /// Which ticket.
        call: Call,
        /// Its number within the incarnation.
        sequence: u64,
        /// Whose it is.
        incarnation: String,
    },
    /// No ticket or leadership came of it, or perhaps one that is given up.
    Failed {
        /// Which ticket.
        call: Call,
        /// Why, in one word.
        reason: String,
    },
    /// A ticket is waited with from now on.
    Wait {
        /// Which ticket.
        call: Call,
    },
    /// The key is held; the moment was taken before a check that passed.
    Granted {
        /// Which ticket.
        call: Call,
        /// Its fence.
        fence: u64,
        /// Whether the check passed.
        held: bool,
        /// The holder before, with its fence.
        previous: Option<(u64, String)>,
    },
    /// The key is still held; the moment was taken before a check that passed.
    Effect {
        /// Which ticket.
        call: Call,
        /// How long the lease lasted at least, from that moment.
        remaining: u64,
    },
    /// A check was refused.
    Lost {
        /// Which ticket.
        call: Call,
    },
    /// The key or the ticket will be given up, by a call or by a drop.
    Release {
        /// Which ticket.
        call: Call,
        /// Before the last check that passed.
        checked: Nanos,
    },
    /// The release was confirmed.
    Released {
        /// Which ticket.
        call: Call,
    },
    /// A wait ended without a turn; the moment was taken before the session was looked at.
    GaveUp {
        /// Which ticket.
        call: Call,
        /// Whether the session lived.
        alive: bool,
        /// Whether this was the coordinator's own longest wait.
        timed_out: bool,
    },
    /// The process did not run for this long.
    Stalled {
        /// Nanoseconds until the event.
        length: Nanos,
    },
    /// A worker ended in order. The last line of its history.
    Finished,
    /// A process was killed, by the number of its history.
    Killed {
        /// Which history.
        history: u64,
    },
    /// A fault begins.
    Fault {
        /// Which.
        number: u64,
        /// Its kind.
        kind: String,
        /// Whether the backend may forget what it had answered.
        forgets: bool,
    },
    /// A fault is over.
    Healed {
        /// Which.
        number: u64,
    },
}

/// Writes the history of one process.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    lines: Mutex<Lines>,
}

#[derive(Debug)]
enum Lines {
    File(File),
    Memory(Vec<Entry>),
}

impl Recorder {
    /// Writes to a new file. Each event is handed to the system at once, so that it survives the
    /// process.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn to_file(path: &Path, clock: Clock) -> Result<Self> {
        let file = File::options().append(true).create_new(true).open(path);
        let file = file.with_context(|| format!("{} could not be created", path.display()))?;
        Ok(Self { clock, lines: Mutex::new(Lines::File(file)) })
    }

    /// Keeps the events, for [`take`](Self::take).
    #[must_use]
    pub const fn in_memory(clock: Clock) -> Self {
        Self { clock, lines: Mutex::new(Lines::Memory(Vec::new())) }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Notes what happens now.
    pub fn note(&self, event: Event) {
        self.note_at(self.now(), event);
    }

    /// Notes what happened at a moment that was taken before.
    pub fn note_at(&self, at: Nanos, event: Event) {
        let entry = Entry { at, event };
        // A history with a gap would accuse the innocent: better no process than such a one.
        let mut lines = self.lines.lock().unwrap_or_else(|_| std::process::abort());
        match &mut *lines {
            Lines::Memory(entries) => entries.push(entry),
            Lines::File(file) => {
                if file.write_all(write(&entry).as_bytes()).is_err() {
                    std::process::abort();
                }
            }
        }
    }

    /// The events that were kept in memory.
    #[must_use]
    pub fn take(&self) -> Vec<Entry> {
        match self.lines.lock().as_deref_mut() {
            Ok(Lines::Memory(entries)) => std::mem::take(entries),
            _ => Vec::new(),
        }
    }
}

/// The holder before as a history notes it.
#[must_use]
pub fn previous(holder: Option<PreviousHolder>) -> Option<(u64, String)> {
    holder.map(|holder| (holder.fence.get(), holder.incarnation.as_str().to_owned()))
}
