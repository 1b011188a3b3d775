use super::hashed::{HashedSet, Identity};

/// Remembers the most recent of what it was told, in bounded memory.
///
/// There are two generations: when the younger is full the older is forgotten. So between
/// `capacity / 2` and `capacity` entries are known.
pub(crate) struct Recent {
    young: HashedSet<Identity>,
    old: HashedSet<Identity>,
    generation: usize,
}

impl Recent {
    pub(crate) fn new(capacity: usize) -> Self {
        let (young, old) = (HashedSet::default(), HashedSet::default());
        Self { young, old, generation: (capacity / 2).max(1) }
    }

    pub(crate) fn contains(&self, identity: Identity) -> bool {
        self.young.contains(&identity) || self.old.contains(&identity)
    }

    /// Remembers `identity`; false when it is known already.
    pub(crate) fn insert(&mut self, identity: Identity) -> bool {
        if self.old.contains(&identity) || !self.young.insert(identity) {
            return false;
        }
        if self.young.len() >= self.generation {
            // The table of the older generation is used again: no allocation from now on.
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        true
    }

    pub(crate) fn remove(&mut self, identity: Identity) {
        self.young.remove(&identity);
        self.old.remove(&identity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A1, A3: what is remembered to tell duplicates is bounded, and the younger half is there.
    #[test]
    fn the_most_recent_half_is_always_known_and_memory_is_bounded() {
        let mut recent = Recent::new(100);
        for number in 0..10_000 {
            assert!(recent.insert(Identity::numbered(number)));
            assert!(!recent.insert(Identity::numbered(number)));
            for known in number.saturating_sub(49)..=number {
                assert!(recent.contains(Identity::numbered(known)));
            }
            assert!(recent.young.len() + recent.old.len() <= 100);
        }
        assert!(!recent.contains(Identity::numbered(0)));
    }

    #[test]
    fn a_removed_entry_is_new_again() {
        let mut recent = Recent::new(10);
        let identity = Identity::numbered(7);
        assert!(recent.insert(identity));
        recent.remove(identity);
        assert!(recent.insert(identity));
    }
}
