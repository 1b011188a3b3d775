use std::sync::Arc;
use std::time::Duration;

use crate::time::Timestamp;

/// What became of an occurrence of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobEvent {
    /// The name of the job.
    pub job: Arc<str>,
    /// When the occurrence was due.
    pub slot: Timestamp,
    /// What became of it.
    pub outcome: JobOutcome,
}

/// What became of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome {
    /// It was run.
    Done {
        /// At this attempt.
        attempt: u32,
    },
    /// An attempt failed; why is an [`Event::Error`](crate::Event::Error).
    Failed {
        /// This one.
        attempt: u32,
        /// Until the next one; none when it was the last.
        again_in: Option<Duration>,
    },
    /// The process died during the last attempt that it may have.
    GaveUp {
        /// So many there were.
        attempts: u32,
    },
    /// So many occurrences were missed, this one the last of them, and are not run. (Of more than
    /// 10,000 only so many are counted.)
    Skipped {
        /// How many.
        count: u64,
    },
}
