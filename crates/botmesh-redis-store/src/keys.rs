use botmesh_core::ChatKey;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::id::ProviderId;
use botmesh_core::store::{Collection, StoreError};

use crate::error::refused;

/// How many buckets the keys of a cluster are spread over.
const BUCKETS: u16 = 128;

/// The longest prefix.
const MAX_PREFIX: usize = 64;

/// How keys are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One server decides all: on a single server and with Sentinel.
    Single,
    /// Keys are spread over buckets. All keys of a bucket share a hash tag and thus a slot, so
    /// that a script may touch several of them.
    Cluster,
}

impl Layout {
    /// What is written into the description of the space.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Single => "single".to_owned(),
            Self::Cluster => format!("cluster {BUCKETS}"),
        }
    }
}

/// What belongs to the inbox of one chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InboxKeys {
    /// A hash of the records that have not ended and of the dead letters.
    pub(crate) records: String,
    /// A sorted set of the positions of pending records.
    pub(crate) pending: String,
    /// The last commit.
    pub(crate) commit: String,
    /// A sorted set of the pending records of all chats of the provider, by the ends of their
    /// leases.
    pub(crate) leases: String,
    pub(crate) shared: SharedInboxKeys,
}

/// What the inboxes of all chats of a bucket share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedInboxKeys {
    /// A sorted set of claims by their ends.
    pub(crate) claims: String,
    /// A sorted set of the messages that are done, by the moments of their ends.
    pub(crate) done: String,
    /// A sorted set of dead letters in the order of chat and position.
    pub(crate) dead: String,
    /// A sorted set of dead letters by the moments at which they were given up.
    pub(crate) buried: String,
    /// The last position that was given.
    pub(crate) last: String,
}

impl SharedInboxKeys {
    fn new(head: &str) -> Self {
        let [claims, done, dead, buried, last] =
            ["claims", "done", "dead", "buried", "last"].map(|kind| format!("{head}:i:{kind}"));
        Self { claims, done, dead, buried, last }
    }
}

/// Names the keys of one bot.
///
/// Different things never get the same name, under one prefix and under different ones: a prefix
/// has no colon, a kind and a collection are fixed words, and only the last part is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keyspace {
    prefix: String,
    layout: Layout,
}

impl Keyspace {
    /// Checks the prefix.
    pub(crate) fn new(prefix: &str, layout: Layout) -> Result<Self, StoreError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.chars().all(allowed) {
            let reason = format!(
                "the prefix {prefix:?} cannot be part of a key (braces would decide where a \
                 cluster keeps it): use 1 to {MAX_PREFIX} characters of a to z, A to Z, 0 to 9, \
                 '.', '_' and '-'"
            );
            return Err(refused("its settings", reason));
        }
        Ok(Self { prefix: prefix.to_owned(), layout })
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    /// What describes the space.
    pub(crate) fn meta(&self) -> String {
        format!("{}:meta", self.prefix)
    }

    pub(crate) fn document(&self, collection: Collection, key: &str) -> String {
        format!("{}:d:{}:{key}", self.head(key), collection.as_str())
    }

    /// The row of a chat's checkpoint and the index of wakes that it belongs to.
    pub(crate) fn checkpoint(&self, chat: &str) -> [String; 2] {
        let head = self.head(chat);
        [format!("{head}:c:{chat}"), format!("{head}:w")]
    }

    /// All indexes of wakes.
    pub(crate) fn wakes(&self) -> Vec<String> {
        self.heads().map(|head| format!("{head}:w")).collect()
    }

    pub(crate) fn lock(&self, key: &str) -> String {
        format!("{}:l:{key}", self.head(key))
    }

    /// What belongs to a chat's inbox.
    pub(crate) fn inbox(&self, chat: &ChatKey) -> InboxKeys {
        let (provider, chat) = (chat.provider(), chat.as_str());
        let head = self.head(chat);
        InboxKeys {
            records: format!("{head}:i:r:{chat}"),
            pending: format!("{head}:i:p:{chat}"),
            commit: format!("{head}:i:c:{chat}"),
            leases: format!("{head}:i:l:{provider}"),
            shared: SharedInboxKeys::new(&head),
        }
    }

    /// What the chats of each bucket share of the inbox.
    pub(crate) fn inboxes(&self) -> Vec<SharedInboxKeys> {
        self.heads().map(|head| SharedInboxKeys::new(&head)).collect()
    }

    /// The leases of a provider's records, of each bucket.
    pub(crate) fn leases(&self, provider: &ProviderId) -> Vec<String> {
        self.heads().map(|head| format!("{head}:i:l:{provider}")).collect()
    }

    /// The sessions of a bucket, a key's turn and its queue.
    pub(crate) fn turn(&self, key: &CoordinationKey) -> [String; 3] {
        let head = self.bucket_head(self.turn_bucket(key));
        let [turn, queue] = ["t", "q"].map(|kind| format!("{head}:co:{kind}:{key}"));
        [format!("{head}:co:live"), turn, queue]
    }

    /// The bucket of a turn: of a chat the one that has its checkpoint and its inbox too.
    pub(crate) fn turn_bucket(&self, key: &CoordinationKey) -> u16 {
        self.bucket(key.as_str().strip_prefix("chat:").unwrap_or(key.as_str()))
    }

    /// The sessions of each bucket.
    pub(crate) fn sessions(&self) -> Vec<String> {
        self.heads().map(|head| format!("{head}:co:live")).collect()
    }

    /// What the channels begin with on which the holders of tickets for `key` are woken.
    pub(crate) fn channels_of(&self, key: &CoordinationKey) -> String {
        format!("{}:co:w:", self.bucket_head(self.turn_bucket(key)))
    }

    /// The channels on which one incarnation is woken, one for each bucket.
    pub(crate) fn channels(&self, incarnation: &str) -> Vec<String> {
        self.heads().map(|head| format!("{head}:co:w:{incarnation}")).collect()
    }

    /// What comes before the kind, for everything that belongs to `key`.
    fn head(&self, key: &str) -> String {
        self.bucket_head(self.bucket(key))
    }

    /// The bucket of a key; zero where there are none.
    pub(crate) fn bucket(&self, key: &str) -> u16 {
        match self.layout {
            Layout::Single => 0,
            Layout::Cluster => crc16(key.as_bytes()) % BUCKETS,
        }
    }

    /// What comes before the kind, for everything in a bucket.
    pub(crate) fn bucket_head(&self, bucket: u16) -> String {
        match self.layout {
            Layout::Single => self.prefix.clone(),
            Layout::Cluster => format!("{{{}:b{bucket:03}}}", self.prefix),
        }
    }

    fn heads(&self) -> impl Iterator<Item = String> {
        let buckets = match self.layout {
            Layout::Single => 0..1,
            Layout::Cluster => 0..BUCKETS,
        };
        buckets.map(|bucket| self.bucket_head(bucket))
    }
}

/// CRC-16/XMODEM, which Redis uses for its slots. Any well spread hash would do, but it must be
/// the same in every version.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use botmesh_core::LeaderName;
    use proptest::prelude::*;

    use super::*;

    fn provider() -> ProviderId {
        ProviderId::new("suite").unwrap()
    }

    fn keyspace(prefix: &str, layout: Layout) -> Keyspace {
        Keyspace::new(prefix, layout).unwrap()
    }

    /// The part that decides on a key's slot: what stands in its first braces.
    fn hash_tag(key: &str) -> &str {
        let (_, rest) = key.split_once('{').unwrap();
        rest.split_once('}').unwrap().0
    }

    #[test]
    fn the_sum_is_the_one_that_redis_documents() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    /// B6: a prefix that could meet another one, or decide on slots, is refused.
    #[test]
    fn a_prefix_with_braces_or_colons_is_refused() {
        for prefix in ["", "a:b", "{a}", "a{", "a}", "a b", "á", &"x".repeat(65)] {
            for layout in [Layout::Single, Layout::Cluster] {
                let error = Keyspace::new(prefix, layout).unwrap_err();
                assert!(matches!(error, StoreError::Refused { .. }), "{prefix:?}: {error}");
            }
        }
    }

    proptest! {
        /// B6: whatever the keys are, those of different prefixes, kinds and collections differ.
        #[test]
        fn different_things_have_different_names(
            a in "[a:cdlw{}]{0,8}", b in "[a:cdlw{}]{0,8}",
        ) {
            for layout in [Layout::Single, Layout::Cluster] {
                let mut names = Vec::new();
                for prefix in ["a", "a.b", "d"] {
                    let space = keyspace(prefix, layout);
                    for key in [&a, &b] {
                        names.push((prefix, "chats", key, space.document(Collection::Chats, key)));
                        names.push((prefix, "users", key, space.document(Collection::Users, key)));
                        names.push((prefix, "c", key, space.checkpoint(key)[0].clone()));
                        names.push((prefix, "l", key, space.lock(key)));
                        let Ok(chat) = ChatKey::new(&provider(), key) else { continue };
                        let turn = space.turn(&CoordinationKey::from(&chat));
                        names.push((prefix, "t", key, turn[1].clone()));
                        names.push((prefix, "q", key, turn[2].clone()));
                        let inbox = space.inbox(&chat);
                        names.push((prefix, "ir", key, inbox.records));
                        names.push((prefix, "ip", key, inbox.pending));
                        names.push((prefix, "ic", key, inbox.commit));
                    }
                }
                for (at, one) in names.iter().enumerate() {
                    for other in &names[..at] {
                        let same = (one.0, one.1, one.2) == (other.0, other.1, other.2);
                        prop_assert_eq!(same, one.3 == other.3, "{:?} {:?}", one, other);
                    }
                }
            }
        }

        /// C12: all keys of one script call share a slot, whatever the key is.
        #[test]
        fn keys_of_one_call_share_a_hash_tag(key in ".{0,20}") {
            let space = keyspace("shop", Layout::Cluster);
            let [row, wakes] = space.checkpoint(&key);
            let tag = format!("shop:b{:03}", space.bucket(&key));
            prop_assert_eq!(hash_tag(&row), &tag);
            prop_assert_eq!(hash_tag(&wakes), &tag);
            let lock = space.lock(&key);
            prop_assert_eq!(hash_tag(&lock), &tag);
            prop_assert!(space.wakes().contains(&wakes));
            if let Ok(chat) = ChatKey::new(&provider(), &key) {
                let [row, _] = space.checkpoint(chat.as_str());
                let InboxKeys { records, pending, commit, leases, shared } = space.inbox(&chat);
                prop_assert!(space.leases(&provider()).contains(&leases));
                prop_assert!(space.inboxes().contains(&shared));
                let SharedInboxKeys { claims, done, dead, buried, last } = shared;
                for name in [records, pending, commit, leases, claims, done, dead, buried, last] {
                    prop_assert_eq!(hash_tag(&name), hash_tag(&row));
                }
            }
            let chat = ChatKey::new(&provider(), &key).map(CoordinationKey::from);
            let leader = LeaderName::new(key.as_str()).map(CoordinationKey::from);
            for key in chat.into_iter().chain(leader) {
                let bucket = space.turn_bucket(&key);
                let tag = format!("shop:b{bucket:03}");
                let [sessions, turn, queue] = space.turn(&key);
                for name in [&sessions, &turn, &queue, &space.channels_of(&key)] {
                    prop_assert_eq!(hash_tag(name), &tag);
                }
                prop_assert_eq!(&space.sessions()[usize::from(bucket)], &sessions);
                if let Some(chat) = key.chat() {
                    prop_assert_eq!(bucket, space.bucket(chat.as_str()));
                }
            }
        }
    }
}
