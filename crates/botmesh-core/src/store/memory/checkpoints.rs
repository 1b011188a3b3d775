use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::sharded::{Series, shrink};
use super::{
    Adopted, ChatKey, CheckpointWrite, Fence, Moment, NEVER, Revision, StoredCheckpoint, Swap,
    after,
};
use crate::store::FENCE_MEMORY;

/// How many ended entries one write removes at most: more than it can add, so that they vanish.
const SWEEP: usize = 4;

/// One shard of the checkpoints. A chat is in `rows`, in `remembered` or in neither; all
/// revisions of a shard come from one series, so they never repeat.
#[derive(Default)]
pub(super) struct Checkpoints {
    rows: HashMap<ChatKey, Row>,
    remembered: HashMap<ChatKey, Remembered>,
    /// When rows expire and when remembered fences are forgotten; not what lasts for ever.
    ends: BTreeSet<(Moment, ChatKey)>,
    /// When conversations are to be woken.
    wakes: BTreeSet<(Moment, ChatKey)>,
    revisions: Series,
}

struct Row {
    revision: Revision,
    fence: Fence,
    body: Box<str>,
    ends_at: Moment,
    wake_at: Option<Moment>,
}

/// The fence of a row that was cleared or expired, or was adopted before there was one.
struct Remembered {
    fence: Fence,
    ends_at: Moment,
}

impl Checkpoints {
    pub(super) fn load(&self, key: &ChatKey, now: Moment) -> Option<StoredCheckpoint> {
        Some(self.live(key, now)?.stored(now))
    }

    pub(super) fn set(
        &mut self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
        now: Moment,
    ) -> Revision {
        self.sweep(now);
        let fence = self.fence(key).map_or(fence, |known| known.max(fence));
        self.write(key, write, fence, now)
    }

    pub(super) fn clear(&mut self, key: &ChatKey, now: Moment) {
        self.sweep(now);
        if let Some(row) = self.rows.get(key) {
            self.remember(key, row.fence, now);
        }
    }

    pub(super) fn adopt(&mut self, key: &ChatKey, fence: Fence, now: Moment) -> Adopted {
        self.sweep(now);
        let previous_fence = self.fence(key);
        let raised = previous_fence.map_or(fence, |known| known.max(fence));
        if self.live(key, now).is_none() {
            self.remember(key, raised, now);
            return Adopted { checkpoint: None, previous_fence };
        }
        let checkpoint = self.rows.get_mut(key).map(|row| {
            row.fence = raised;
            row.stored(now)
        });
        Adopted { checkpoint, previous_fence }
    }

    pub(super) fn set_if(
        &mut self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
        now: Moment,
    ) -> Swap {
        self.sweep(now);
        if !self.is_met(key, expected, fence, now) {
            return Swap::Refused;
        }
        Swap::Applied(self.write(key, write, fence, now))
    }

    pub(super) fn clear_if(
        &mut self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
        now: Moment,
    ) -> Swap {
        self.sweep(now);
        if !self.is_met(key, Some(expected), fence, now) {
            return Swap::Refused;
        }
        self.remember(key, fence, now);
        Swap::Applied(Revision::new(self.revisions.next(now)))
    }

    /// Adds the chats to be woken until `until`, the earliest of this shard first.
    pub(super) fn to_wake(
        &self,
        until: Moment,
        now: Moment,
        limit: usize,
        found: &mut Vec<(Moment, ChatKey)>,
    ) {
        let in_time = self.wakes.iter().take_while(|(moment, _)| *moment <= until);
        let live = in_time.filter(|(_, key)| self.live(key, now).is_some());
        found.extend(live.take(limit).map(|(moment, key)| (*moment, key.clone())));
    }

    fn live(&self, key: &ChatKey, now: Moment) -> Option<&Row> {
        self.rows.get(key).filter(|row| row.ends_at > now)
    }

    fn fence(&self, key: &ChatKey) -> Option<Fence> {
        let remembered = || self.remembered.get(key).map(|remembered| remembered.fence);
        self.rows.get(key).map(|row| row.fence).or_else(remembered)
    }

    fn is_met(&self, key: &ChatKey, expected: Option<Revision>, fence: Fence, now: Moment) -> bool {
        self.live(key, now).map(|row| row.revision) == expected
            && self.fence(key).is_none_or(|known| known <= fence)
    }

    fn write(
        &mut self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
        now: Moment,
    ) -> Revision {
        self.remove(key);
        let revision = Revision::new(self.revisions.next(now));
        let ends_at = write.expires_in.map_or(NEVER, |time| after(now, time));
        let wake_at = write.wake_in.map(|time| after(now, time));
        if ends_at != NEVER {
            self.ends.insert((ends_at, key.clone()));
        }
        if let Some(wake_at) = wake_at {
            self.wakes.insert((wake_at, key.clone()));
        }
        let row = Row { revision, fence, body: write.body.into(), ends_at, wake_at };
        self.rows.insert(key.clone(), row);
        revision
    }

    /// Puts the memory of a fence in the place of whatever is known of the chat.
    fn remember(&mut self, key: &ChatKey, fence: Fence, since: Moment) {
        self.remove(key);
        let ends_at = after(since, FENCE_MEMORY);
        self.ends.insert((ends_at, key.clone()));
        self.remembered.insert(key.clone(), Remembered { fence, ends_at });
        shrink(&mut self.rows);
    }

    fn remove(&mut self, key: &ChatKey) {
        if let Some(row) = self.rows.remove(key) {
            self.ends.remove(&(row.ends_at, key.clone()));
            if let Some(wake_at) = row.wake_at {
                self.wakes.remove(&(wake_at, key.clone()));
            }
        } else if let Some(remembered) = self.remembered.remove(key) {
            self.ends.remove(&(remembered.ends_at, key.clone()));
        }
    }

    fn sweep(&mut self, now: Moment) {
        for _ in 0..SWEEP {
            let Some((ends_at, key)) = self.ends.first().filter(|(moment, _)| *moment <= now)
            else {
                return;
            };
            let (ends_at, key) = (*ends_at, key.clone());
            match self.rows.get(&key) {
                Some(row) => self.remember(&key, row.fence, ends_at),
                None => self.remove(&key),
            }
            shrink(&mut self.remembered);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let entries = self.rows.len() + self.remembered.len();
        entries.max(self.ends.len()).max(self.wakes.len())
    }
}

impl Row {
    fn stored(&self, now: Moment) -> StoredCheckpoint {
        let left = |moment: Moment| Duration::from_micros(moment.saturating_sub(now));
        StoredCheckpoint {
            revision: self.revision,
            fence: self.fence,
            body: self.body.as_ref().into(),
            wake_in: self.wake_at.map(left),
        }
    }
}
