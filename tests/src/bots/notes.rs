//! What replicas, the platform and the driver of a run note, one line of JSON for each event.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::history::{Clock, Nanos};

/// One process from its start to its end; the driver counts them.
pub type Life = u64;

/// The number of a message that a user sent.
pub type MessageNumber = u64;

/// One event with its moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: Nanos,
    /// What.
    pub event: Event,
}

/// What a replica answers to a conversation that cannot be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// It tells the user.
    Notify,
    /// It begins again.
    Restart,
    /// A function of the bot decides.
    Function,
    /// The message is a new one.
    Drop,
}

/// What happened. Chats go by their whole key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Replica: it runs.
    Started {
        /// Which version of the bot.
        version: u32,
        /// What it does about conversations that cannot go on.
        decision: Decision,
    },
    /// Replica: a turn was granted, seen after it was.
    Granted {
        /// The chat.
        chat: String,
        /// The fence.
        fence: u64,
    },
    /// Replica: a turn is over.
    Over {
        /// The chat.
        chat: String,
        /// The fence.
        fence: u64,
        /// Whether its work was done.
        clean: bool,
    },
    /// Replica: a message is handled from now on.
    Handled {
        /// The chat.
        chat: String,
        /// The message.
        message: MessageNumber,
        /// The fence of its turn.
        fence: u64,
    },
    /// Replica: a conversation was handed over.
    Handover {
        /// The chat.
        chat: String,
        /// The conversation.
        name: String,
        /// How it went on.
        outcome: String,
    },
    /// Replica: something failed.
    Failed {
        /// The chat, if it was one.
        chat: Option<String>,
        /// What was being done.
        during: String,
        /// What went wrong.
        error: String,
    },
    /// Replica: another event of the bot.
    Told {
        /// Its text.
        what: String,
    },
    /// Replica: the process did not run for so long.
    Stalled {
        /// Nanoseconds until the event.
        length: Nanos,
    },
    /// Replica: it has stopped in order.
    Stopped {
        /// How many accepted messages it left.
        unhandled: usize,
    },
    /// Platform: a user says something.
    Said {
        /// The chat.
        chat: String,
        /// The message.
        message: MessageNumber,
        /// The words.
        text: String,
        /// Whether the user repeats what was not answered.
        again: bool,
    },
    /// Platform: a message is given to a replica.
    Delivered {
        /// The message.
        message: MessageNumber,
        /// To whom.
        life: Life,
    },
    /// Platform: a replica has accepted a message.
    Accepted {
        /// The message.
        message: MessageNumber,
        /// Who.
        life: Life,
    },
    /// Platform: the bot says something.
    Replied {
        /// The chat.
        chat: String,
        /// The words.
        text: String,
        /// Who sent it.
        life: Life,
        /// The fence of the turn that the sender had.
        fence: Option<u64>,
        /// The sender's moment before it looked at its guard once more.
        checked: Nanos,
        /// What the guard answered.
        allowed: bool,
    },
    /// Platform: a replica is connected over the exclusive connection.
    Connected {
        /// Who.
        life: Life,
    },
    /// Platform: the exclusive connection of a replica has ended.
    Disconnected {
        /// Who.
        life: Life,
    },
    /// Platform: the longest patience of a user is over.
    Silence {
        /// The chat.
        chat: String,
        /// When the user spoke last.
        since: Nanos,
    },
    /// Platform: at the end, when all is healed, a user gets no answer.
    Dead {
        /// The chat.
        chat: String,
    },
    /// Driver: a fault begins.
    Fault {
        /// Which.
        number: u64,
        /// Its kind.
        kind: String,
        /// Whether the backend may forget what it had answered.
        forgets: bool,
        /// To whom it happens, if to one.
        life: Option<Life>,
    },
    /// Driver: a fault is over.
    Healed {
        /// Which.
        number: u64,
    },
    /// Driver: a process was killed.
    Killed {
        /// Which.
        life: Life,
    },
    /// Driver: a process that was told to stop did not.
    NeverStopped {
        /// Which.
        life: Life,
    },
}

/// Takes the notes of one process.
#[derive(Debug)]
pub struct Notebook(Mutex<File>);

impl Notebook {
    /// Writes to a new file. Each line is handed to the system at once, so that it survives the
    /// process.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn new(path: &Path) -> Result<Self> {
        let file = File::options().append(true).create_new(true).open(path);
        Ok(Self(Mutex::new(file.with_context(|| path.display().to_string())?)))
    }

    /// The present moment.
    #[must_use]
    pub fn now() -> Nanos {
        Clock::Machine.now()
    }

    /// Notes what happens now.
    pub fn note(&self, event: Event) {
        self.note_at(Self::now(), event);
    }

    /// Notes what happened at a moment that was taken before.
    pub fn note_at(&self, at: Nanos, event: Event) {
        let line = serde_json::to_string(&Entry { at, event }).map(|line| line + "\n");
        // Notes with a gap would accuse the innocent: better no process than such ones.
        let Ok(line) = line else { std::process::abort() };
        if self.0.lock().write_all(line.as_bytes()).is_err() {
            std::process::abort();
        }
    }
}

/// Reads notes. A last line that a kill has cut is left out.
///
/// # Errors
/// When another line cannot be read.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    // Who was killed before it began has noted nothing.
    let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let entry = |line| serde_json::from_str(line).with_context(|| format!("{line:?}"));
    whole.lines().map(entry).collect()
}
