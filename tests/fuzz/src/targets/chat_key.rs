//! Keys of chats and of what is coordinated, as they lie in stores and queues.

use botmesh_core::ChatKey;
use botmesh_core::coordination::CoordinationKey;

use crate::memory::bounded;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 16, 1024, |_| {
        if let Ok(key) = ChatKey::decode(text) {
            // One chat has one key, and says the same however often it is written and read.
            assert_eq!(key.as_str(), text);
            let _ = (key.provider(), key.chat(), key.participant(), key.default_user());
            if let Ok(deeper) = key.for_participant("ana:b%c") {
                assert_eq!(deeper.participant().as_deref(), Some("ana:b%c"));
                assert_eq!(deeper.chat(), key.chat());
            }
        }
        if let Ok(key) = CoordinationKey::decode(text) {
            assert_eq!(key.as_str(), text);
            let _ = (key.chat(), key.leader());
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    ["telegram:42", "telegram:-100%3A5:7", "chat:telegram:42", "leader:telegram", "a:%25:%3A"]
        .map(|key| key.as_bytes().to_vec())
        .into()
}
