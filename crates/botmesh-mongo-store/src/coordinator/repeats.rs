//! Who was told lately.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::transition::Wakeup;
use botmesh_core::id::Fence;
use parking_lot::Mutex;

/// The same is not told again within this time.
const PAUSE: Duration = Duration::from_secs(1);
/// So many keys are remembered.
const MOST: usize = 1_024;

/// The last grant of each key that somebody was told of.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<HashMap<CoordinationKey, (Fence, Instant)>>);

impl Repeats {
    /// Whether this is to be told; then it counts as told.
    pub(super) fn is_new(&self, wakeup: &Wakeup, now: Instant) -> bool {
        let mut told = self.0.lock();
        let before = told.get(&wakeup.key);
        if before.is_some_and(|(fence, at)| *fence == wakeup.grant.fence && now - *at < PAUSE) {
            return false;
        }
        if told.len() >= MOST {
            told.retain(|_, (_, at)| now - *at < PAUSE);
        }
        if told.len() < MOST {
            told.insert(wakeup.key.clone(), (wakeup.grant.fence, now));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use botmesh_core::LeaderName;
    use botmesh_core::coordination::Grant;
    use botmesh_core::coordination::transition::TicketId;
    use botmesh_core::id::IncarnationId;

    use super::*;

    fn grant(key: usize, fence: u64) -> Wakeup {
        let incarnation = IncarnationId::new("a#1").unwrap();
        Wakeup {
            ticket: TicketId { incarnation, sequence: 1 },
            key: LeaderName::new(key.to_string()).unwrap().into(),
            grant: Grant { fence: Fence::new(fence), previous: None },
        }
    }

    /// C14: nobody who polls makes others be told again and again; each grant is told.
    #[test]
    fn a_grant_is_told_once_in_a_while() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        assert!(repeats.is_new(&grant(1, 7), now));
        assert!(!repeats.is_new(&grant(1, 7), now + PAUSE / 2));
        assert!(repeats.is_new(&grant(1, 8), now + PAUSE / 2));
        assert!(repeats.is_new(&grant(2, 8), now));
        assert!(repeats.is_new(&grant(1, 8), now + PAUSE * 2));
        for key in 0..MOST * 3 {
            assert!(repeats.is_new(&grant(key, 9), now + PAUSE * 2), "{key}");
        }
        assert!(repeats.0.lock().len() <= MOST);
    }
}
