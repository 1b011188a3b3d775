//! Patterns of jobs, which an application may take from its users.

use botmesh_core::schedule::{Schedule, tz};
use botmesh_core::time::Timestamp;

use crate::memory::bounded;

/// 2026-01-01.
const BEGIN: Timestamp = Timestamp::from_millis(1_767_225_600_000);

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let utc = tz("UTC");
    bounded(bytes, 256, 64 << 10, |_| {
        let Ok(schedule) = Schedule::cron(text, &utc) else { return };
        let mut moment = BEGIN;
        for _ in 0..4 {
            let Some(next) = schedule.next_after(moment) else { return };
            assert!(next > moment, "{text:?} comes at {next:?} after {moment:?}");
            moment = next;
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    ["* * * * *", "*/5 2-4,7 1,15 JAN-MAR MON#2", "0 30 9 L * *", "0 0 29 2 *", "@daily"]
        .map(|pattern| pattern.as_bytes().to_vec())
        .into()
}
