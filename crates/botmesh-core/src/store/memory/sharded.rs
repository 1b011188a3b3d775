use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::{Mutex, MutexGuard};

use super::Moment;
use crate::id::StableHash;

/// Enough that threads seldom meet, few enough that an empty store is small.
const SHARDS: usize = 32;

/// Data spread over several locks by key. A lock is held for one operation and never over an await.
pub(super) struct Sharded<T> {
    shards: [Mutex<T>; SHARDS],
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl<T> Sharded<T> {
    /// Locks the data of `key`.
    pub(super) fn lock(&self, key: &str) -> MutexGuard<'_, T> {
        // Keys that are chosen to meet in one shard only wait for each other.
        let hash = StableHash::of(key);
        self.shards[(hash ^ (hash >> 40)) as usize % SHARDS].lock()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mutex<T>> {
        self.shards.iter()
    }
}

/// Numbers that never repeat: a hybrid logical clock.
#[derive(Default)]
pub(super) struct Series(u64);

impl Series {
    pub(super) fn next(&mut self, now: Moment) -> u64 {
        self.0 = now.max(self.0 + 1);
        self.0
    }
}

/// Gives back the room of a map that was once much larger.
pub(super) fn shrink<K: Hash + Eq, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > 64 && map.len() < map.capacity() / 4 {
        map.shrink_to(map.len() * 2);
    }
}
