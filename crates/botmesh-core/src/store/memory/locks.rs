use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::sharded::{Series, shrink};
use super::{Fence, FencedLock, LockToken, Moment};

/// How many expired locks one write removes at most: more than it can add, so that they vanish.
const SWEEP: usize = 4;

/// One shard of the locks. All fences of a shard come from one series, so a released or expired
/// lock need not be remembered for the next fence to be higher.
#[derive(Default)]
pub(super) struct Locks {
    held: HashMap<Arc<str>, Held>,
    ends: BTreeSet<(Moment, Arc<str>)>,
    fences: Series,
}

struct Held {
    token: LockToken,
    ends_at: Moment,
}

impl Locks {
    pub(super) fn acquire(
        &mut self,
        key: &str,
        ends_at: Moment,
        now: Moment,
    ) -> Option<FencedLock> {
        self.sweep(now);
        if self.held.get(key).is_some_and(|held| held.ends_at > now) {
            return None;
        }
        self.remove(key);
        let token = LockToken::random();
        let key: Arc<str> = key.into();
        self.ends.insert((ends_at, Arc::clone(&key)));
        self.held.insert(key, Held { token: token.clone(), ends_at });
        Some(FencedLock { token, fence: Fence::new(self.fences.next(now)) })
    }

    pub(super) fn renew(
        &mut self,
        key: &str,
        token: &LockToken,
        ends_at: Moment,
        now: Moment,
    ) -> bool {
        if !self.is_held_by(key, token, now) {
            return false;
        }
        if let Some((key, mut held)) = self.remove(key) {
            held.ends_at = ends_at;
            self.ends.insert((ends_at, Arc::clone(&key)));
            self.held.insert(key, held);
        }
        true
    }

    pub(super) fn release(&mut self, key: &str, token: &LockToken, now: Moment) -> bool {
        self.sweep(now);
        let held = self.is_held_by(key, token, now);
        if held {
            self.remove(key);
        }
        held
    }

    fn is_held_by(&self, key: &str, token: &LockToken, now: Moment) -> bool {
        self.held.get(key).is_some_and(|held| held.ends_at > now && held.token == *token)
    }

    fn remove(&mut self, key: &str) -> Option<(Arc<str>, Held)> {
        let (key, held) = self.held.remove_entry(key)?;
        self.ends.remove(&(held.ends_at, Arc::clone(&key)));
        Some((key, held))
    }

    fn sweep(&mut self, now: Moment) {
        for _ in 0..SWEEP {
            match self.ends.first() {
                Some((ends_at, _)) if *ends_at <= now => {}
                _ => break,
            }
            if let Some((_, key)) = self.ends.pop_first() {
                self.held.remove(&key);
            }
        }
        shrink(&mut self.held);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.held.len().max(self.ends.len())
    }
}
