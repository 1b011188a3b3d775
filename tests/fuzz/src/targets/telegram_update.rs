//! What Telegram sends.

use botmesh_core::{Message, ProviderId};
use botmesh_telegram::{Recipient, Update};
use serde_json::Value;

use crate::memory::bounded;

pub(crate) fn run(bytes: &[u8]) {
    // A value of two bytes is an entry of 48 in a list that may just have grown, and so again in the copy.
    bounded(bytes, 256, 16 << 10, |bytes| {
        if let Some(message) = read(bytes) {
            assert!(message.id.is_some(), "a message without an id cannot be told from its copy");
            assert!(message.raw.is_some());
            travels(&message);
        }
    });
}

pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
    let to = Recipient::new(ProviderId::new("telegram").unwrap(), Some("fake_bot".to_owned()));
    Update::from_json(bytes).ok().map(|update| update.to_message(&to))
}

/// The same message arrives at another replica.
pub(crate) fn travels(message: &Message) {
    let written = serde_json::to_string(message).unwrap();
    let read: Message = serde_json::from_str(&written).unwrap();
    assert_eq!(read, *message, "written as {written}");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let directory = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/botmesh-telegram/tests/updates/fixtures"
    );
    let files = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let mut seeds = Vec::new();
    for path in paths {
        let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for mut case in cases {
            case["update"]["update_id"] = 1.into();
            seeds.push(case["update"].to_string().into_bytes());
        }
    }
    seeds
}
