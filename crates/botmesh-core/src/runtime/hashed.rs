use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use crate::id::{ChatKey, Fence, MessageId};

/// How many parts each table of chats has, so that threads seldom wait for each other.
pub(crate) const SHARDS: usize = 64;

/// A chat with its hash under the random key of a [`ChatHasher`]: it is computed once for all
/// look-ups of a message.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HashedChat {
    // Compared first.
    hash: u64,
    chat: ChatKey,
}

/// What a message or a chat is remembered by: 128 bits of keyed hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// The random keys of the hashes of one bot.
#[derive(Default)]
pub(crate) struct ChatHasher(RandomState, RandomState);

/// Takes over a hash that was computed before.
#[derive(Default)]
pub(crate) struct Precomputed(u64);

/// A map by what knows its hash already.
pub(crate) type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<Precomputed>>;

/// A set of what knows its hash already.
pub(crate) type HashedSet<K> = HashSet<K, BuildHasherDefault<Precomputed>>;

impl ChatHasher {
    pub(crate) fn chat(&self, chat: &ChatKey) -> HashedChat {
        HashedChat { hash: self.0.hash_one(chat), chat: chat.clone() }
    }

    /// A message of this chat.
    pub(crate) fn message(&self, chat: &HashedChat, id: &MessageId) -> Identity {
        Identity(chat.hash, self.1.hash_one(id))
    }

    /// The chat itself, under the turn with this fence.
    pub(crate) fn chat_under(&self, chat: &HashedChat, fence: Fence) -> Identity {
        Identity(chat.hash, self.1.hash_one((&chat.chat, fence)))
    }
}

impl Identity {
    #[cfg(test)]
    pub(crate) const fn numbered(number: u64) -> Self {
        Self(number, 0)
    }
}

impl HashedChat {
    pub(crate) const fn chat(&self) -> &ChatKey {
        &self.chat
    }

    /// The number of the part of a table that the chat belongs to.
    pub(crate) const fn shard(&self) -> usize {
        // Neither the lowest nor the highest bits: by those a map finds its places.
        #[allow(clippy::cast_possible_truncation, reason = "what remains is below SHARDS")]
        let index = (self.hash >> 40) as usize % SHARDS;
        index
    }
}

impl Hash for HashedChat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The ids of one chat differ in the second half only, equal ids of chats in the first.
        state.write_u64(self.0.rotate_left(32) ^ self.1);
    }
}

impl Hasher for Precomputed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(false, "only precomputed hashes are taken over");
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
}
