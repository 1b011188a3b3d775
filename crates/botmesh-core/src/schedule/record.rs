//! What is remembered of a durable job, and what follows from it. Nothing here asks a clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::{Misfire, Retry};
use super::moments::Schedule;
use crate::time::Timestamp;

/// So many missed occurrences are counted; of more it is told that there were so many at least.
const COUNTED: u64 = 10_000;

/// What is remembered of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The schedule by which `slot` was found. With another one the past is left alone.
    schedule: String,
    /// The occurrence that is being run, else the last one that was seen to.
    slot: Timestamp,
    /// The attempts at that occurrence so far; none when it needs no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// When the next attempt may begin; none while one may be under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing before this moment.
    Wait(Timestamp),
    /// Write the record; then run the attempt that it tells of.
    Run(Record, Occurrence),
    /// Write the record: these occurrences are not run.
    Skip(Record, Skipped),
    /// Write the record: the occurrence has failed as often as it may.
    GiveUp(Record, Occurrence),
    /// There is nothing more to do, ever.
    Done,
}

/// One attempt at one occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) slot: Timestamp,
    /// From one.
    pub(crate) attempt: u32,
    /// How many were missed before it and are not run.
    pub(crate) skipped: u64,
}

/// Occurrences that are not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// The last of them.
    pub(crate) until: Timestamp,
    pub(crate) count: u64,
}

impl Record {
    /// The record of a job that begins now.
    pub(crate) fn begin(schedule: &Schedule, now: Timestamp) -> Self {
        Self {
            schedule: schedule.to_string(),
            slot: schedule.beginning(now),
            attempts: None,
            retry_at: None,
        }
    }

    /// The record that was read, or a new one when it was of another schedule.
    pub(crate) fn resume(self, schedule: &Schedule, now: Timestamp) -> Self {
        if self.schedule == schedule.to_string() { self } else { Self::begin(schedule, now) }
    }

    /// What is to be done at `now`.
    pub(crate) fn next(
        &self,
        schedule: &Schedule,
        misfire: Misfire,
        retry: &Retry,
        now: Timestamp,
    ) -> Step {
        if let Some(attempts) = self.attempts {
            return self.again(attempts, retry, now);
        }
        let Some(first) = schedule.next_after(self.slot) else { return Step::Done };
        if first > now {
            return Step::Wait(first);
        }
        let late = |slot: Timestamp| now.since(slot) > schedule.patience();
        if !late(first) {
            return self.run(first, 0);
        }
        let latest = schedule.last_until(now).filter(|latest| *latest > first).unwrap_or(first);
        match misfire {
            Misfire::Skip if late(latest) => {
                let count = count(schedule, first, latest) + 1;
                let record = Self { slot: latest, ..self.clone() };
                Step::Skip(record, Skipped { until: latest, count })
            }
            Misfire::Skip | Misfire::Once => self.run(latest, count(schedule, first, latest)),
            Misfire::CatchUp { most } => {
                let oldest = oldest_of(schedule, first, latest, most.max(1));
                self.run(oldest, count(schedule, first, oldest))
            }
        }
    }

    fn run(&self, slot: Timestamp, skipped: u64) -> Step {
        let record = Self { slot, attempts: Some(1), retry_at: None, ..self.clone() };
        Step::Run(record, Occurrence { slot, attempt: 1, skipped })
    }

    /// Of an attempt without a moment to repeat it nothing is known but that it began: the process
    /// that made it has died.
    fn again(&self, attempts: u32, retry: &Retry, now: Timestamp) -> Step {
        if attempts >= retry.attempts {
            let occurrence = Occurrence { slot: self.slot, attempt: attempts, skipped: 0 };
            return Step::GiveUp(self.settled(), occurrence);
        }
        match self.retry_at {
            Some(at) if at > now => Step::Wait(at),
            _ => {
                let attempt = attempts + 1;
                let record = Self { attempts: Some(attempt), retry_at: None, ..self.clone() };
                Step::Run(record, Occurrence { slot: self.slot, attempt, skipped: 0 })
            }
        }
    }

    /// The record after the occurrence needs no more attempts.
    pub(crate) fn settled(&self) -> Self {
        Self { attempts: None, retry_at: None, ..self.clone() }
    }

    /// The record after an attempt that failed, and the pause before the next one; none when it was
    /// the last.
    pub(crate) fn failed(&self, retry: &Retry, now: Timestamp) -> (Self, Option<Duration>) {
        let attempts = self.attempts.unwrap_or(1);
        if attempts >= retry.attempts {
            return (self.settled(), None);
        }
        let pause = retry.pause(attempts);
        (Self { retry_at: Some(now.plus(pause)), ..self.clone() }, Some(pause))
    }
}

/// How many occurrences there are from `first` on before `end`.
fn count(schedule: &Schedule, first: Timestamp, end: Timestamp) -> u64 {
    let mut slot = first;
    let mut count = 0;
    while slot < end && count < COUNTED {
        count += 1;
        match schedule.next_after(slot) {
            Some(next) => slot = next,
            None => break,
        }
    }
    count
}

/// The oldest of the `most` latest occurrences, from `first` to `latest`.
fn oldest_of(schedule: &Schedule, first: Timestamp, latest: Timestamp, most: u32) -> Timestamp {
    // So few that none is left out: this is asked for each of them, and counting takes long.
    if latest.since(first) < schedule.shortest().saturating_mul(most) {
        return first;
    }
    let mut oldest = latest;
    for _ in 1..most {
        let before = Timestamp::from_millis(oldest.as_millis().saturating_sub(1));
        match schedule.last_until(before) {
            Some(earlier) if earlier >= first => oldest = earlier,
            _ => break,
        }
    }
    oldest
}

#[cfg(test)]
mod tests;
