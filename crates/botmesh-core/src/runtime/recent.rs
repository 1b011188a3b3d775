use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};

/// Remembers the most recent of what it was told, in bounded memory.
///
/// Kept are 128-bit hashes under random keys, in two generations: when the younger is full the
/// older is forgotten. So between `capacity / 2` and `capacity` entries are known.
pub(crate) struct Recent {
    young: HashSet<u128>,
    old: HashSet<u128>,
    generation: usize,
}

/// The random keys of a family of [`Recent`] sets.
#[derive(Default)]
pub(crate) struct RecentHasher(RandomState, RandomState);

impl RecentHasher {
    pub(crate) fn hash(&self, value: &impl Hash) -> u128 {
        (u128::from(self.0.hash_one(value)) << 64) | u128::from(self.1.hash_one(value))
    }
}

impl Recent {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { young: HashSet::new(), old: HashSet::new(), generation: (capacity / 2).max(1) }
    }

    pub(crate) fn contains(&self, hash: u128) -> bool {
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    /// Remembers `hash`; false when it is known already.
    pub(crate) fn insert(&mut self, hash: u128) -> bool {
        if self.old.contains(&hash) || !self.young.insert(hash) {
            return false;
        }
        if self.young.len() >= self.generation {
            // The table of the older generation is used again: no allocation from now on.
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        true
    }

    pub(crate) fn remove(&mut self, hash: u128) {
        self.young.remove(&hash);
        self.old.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A1, A3: what is remembered to tell duplicates is bounded, and the younger half is there.
    #[test]
    fn the_most_recent_half_is_always_known_and_memory_is_bounded() {
        let mut recent = Recent::new(100);
        for number in 0..10_000_u128 {
            assert!(recent.insert(number));
            assert!(!recent.insert(number));
            for known in number.saturating_sub(49)..=number {
                assert!(recent.contains(known));
            }
            assert!(recent.young.len() + recent.old.len() <= 100);
        }
        assert!(!recent.contains(0));
    }

    #[test]
    fn a_removed_entry_is_new_again() {
        let mut recent = Recent::new(10);
        let hasher = RecentHasher::default();
        let hash = hasher.hash(&("chat", "id"));
        assert!(recent.insert(hash));
        recent.remove(hash);
        assert!(recent.insert(hash));
    }
}
