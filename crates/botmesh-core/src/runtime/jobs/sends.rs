use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::id::{ChatKey, StableHash};
use crate::time::Timestamp;

/// Tells the sends of one attempt at an occurrence apart, so that each has the key that it had in
/// the attempt before.
pub(super) struct JobSends {
    /// The same for all attempts at the occurrence, and for no other.
    occurrence: String,
    /// How many sends each chat was given. They are counted by chat, because the order of the
    /// chats, and which there are, can differ from one attempt to the next.
    counts: Mutex<BTreeMap<ChatKey, u32>>,
}

impl JobSends {
    pub(super) fn new(job: &str, slot: Timestamp) -> Self {
        let occurrence = format!("{:016x}-{:x}", StableHash::of(job), slot.as_millis());
        Self { occurrence, counts: Mutex::default() }
    }

    /// The key of the next send to the chat. It has a part more than the keys of records, and so
    /// is none of them.
    pub(super) fn next_key(&self, chat: &ChatKey) -> String {
        let index = {
            let mut counts = self.counts.lock();
            let count = counts.entry(chat.clone()).or_default();
            let index = *count;
            *count = index.saturating_add(1);
            index
        };
        format!("{}-{:016x}-{index}", self.occurrence, StableHash::of(chat.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H1, G4: the keys are the same in each release, and differ by job, occurrence, chat and
    /// number.
    #[test]
    fn each_send_of_an_occurrence_has_a_key_of_its_own() {
        let chats = ["test:ana", "test:bo"].map(|chat| ChatKey::decode(chat).unwrap());
        let mut keys = std::collections::BTreeSet::new();
        for (job, slot) in [("report", 1), ("report", 2), ("news", 1)] {
            let keys_of = |order: [&ChatKey; 4]| {
                let sends = JobSends::new(job, Timestamp::from_millis(slot));
                order.map(|chat| sends.next_key(chat))
            };
            let [ana, bo] = &chats;
            let one = keys_of([ana, bo, ana, bo]);
            let mut other = keys_of([bo, bo, ana, ana]);
            keys.extend(one.clone());
            let mut one = one;
            one.sort();
            other.sort();
            assert_eq!(one, other);
        }
        assert_eq!(keys.len(), 12, "{keys:?}");
    }
}
