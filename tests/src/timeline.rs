//! The histories of a run, put together by key.

mod assemble;

use std::collections::BTreeMap;

use crate::history::{Call, Nanos};

pub use assemble::assemble;

/// All that is known of a run.
#[derive(Debug, Default)]
pub struct Timeline {
    /// The processes, by the number of their history.
    pub processes: Vec<Process>,
    /// What happened to each key.
    pub keys: BTreeMap<String, Key>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// When some process did not run although nobody stopped it, from and to.
    pub stalls: Vec<(Nanos, Nanos)>,
}

/// One process of a worker.
#[derive(Debug, Default, Clone)]
pub struct Process {
    /// The id of its replica.
    pub replica: String,
    /// Its lease.
    pub lease: Nanos,
    /// When it was killed.
    pub killed: Option<Nanos>,
    /// Whether it ended in order.
    pub finished: bool,
    /// Its last event.
    pub last: Nanos,
}

/// What happened to one key.
#[derive(Debug, Default)]
pub struct Key {
    /// Everything that was asked for.
    pub tickets: Vec<Ticket>,
    /// The moments of all events.
    pub marks: Vec<Nanos>,
}

/// One ticket, or one campaign for a leadership.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// The history that it is in.
    pub process: usize,
    /// Its number there.
    pub call: Call,
    /// Before it was asked for.
    pub sent: Nanos,
    /// After it was acknowledged; never for a campaign.
    pub reserved: Option<Reserved>,
    /// Since when it is waited with.
    pub wait: Option<Nanos>,
    /// What was granted to it: one grant at most, if all is well.
    pub grants: Vec<Grant>,
    /// What else became of it.
    pub end: End,
}

/// An acknowledged ticket.
#[derive(Debug, Clone)]
pub struct Reserved {
    /// After it was acknowledged.
    pub at: Nanos,
    /// Its number within the incarnation.
    pub sequence: u64,
    /// Whose it is.
    pub incarnation: String,
}

/// How a ticket ended that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Not at all.
    Open,
    /// With an error.
    Failed(Nanos),
    /// It was given up.
    GaveUp {
        /// Before that.
        at: Nanos,
        /// Whether its session lived then.
        alive: bool,
        /// Whether the coordinator gave it up after its longest wait.
        timed_out: bool,
    },
}

/// One grant as its holder saw it.
#[derive(Debug, Clone)]
pub struct Grant {
    /// After it was seen, and before a check that passed if `held`.
    pub at: Nanos,
    /// Its fence.
    pub fence: u64,
    /// Whether it was worth something when it was seen.
    pub held: bool,
    /// The holder before, with its fence.
    pub previous: Option<(u64, String)>,
    /// Before the last check that passed.
    pub checked: Nanos,
    /// How long the lease lasted at least when it was last noted.
    pub entitled: Nanos,
    /// When the holder began to release it, or was refused.
    pub ended: Option<Nanos>,
}

/// One fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Its kind.
    pub kind: String,
    /// When it began.
    pub begin: Nanos,
    /// When it was over; for ever in the future if it is not.
    pub end: Nanos,
    /// Whether the backend may have forgotten what it had answered.
    pub forgets: bool,
}

impl Ticket {
    /// Whose ticket it is, if it was acknowledged.
    #[must_use]
    pub fn incarnation(&self) -> Option<&str> {
        self.reserved.as_ref().map(|reserved| reserved.incarnation.as_str())
    }

    /// When the wait ended: by a grant, by giving up, by an error, with its process, or never.
    #[must_use]
    pub fn wait_end(&self, processes: &[Process]) -> Option<Nanos> {
        let granted = self.grants.first().map(|grant| grant.at);
        granted.or(match self.end {
            End::Failed(at) | End::GaveUp { at, .. } => Some(at),
            End::Open => processes.get(self.process).and_then(|process| process.killed),
        })
    }
}

impl Timeline {
    /// Every ticket with a grant of it, of one key, by fence.
    #[must_use]
    pub fn grants(key: &Key) -> Vec<(&Ticket, &Grant)> {
        let mut grants: Vec<_> = key
            .tickets
            .iter()
            .flat_map(|ticket| ticket.grants.iter().map(move |grant| (ticket, grant)))
            .collect();
        grants.sort_by_key(|(_, grant)| (grant.fence, grant.at));
        grants
    }

    /// Whether the backend may have forgotten between two moments what it had answered.
    #[must_use]
    pub fn forgot(&self, from: Nanos, to: Nanos) -> bool {
        // A server that writes its log each second may lose what it answered shortly before.
        let lag = 3_000_000_000;
        let lost = |fault: &Fault| fault.begin <= to && fault.end.saturating_add(lag) >= from;
        self.faults.iter().filter(|fault| fault.forgets).any(|fault| {
            lost(fault) || (fault.begin.saturating_sub(lag) <= to && fault.end >= from)
        })
    }
}
