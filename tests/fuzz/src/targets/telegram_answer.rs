//! What a Bot API server answers when it is asked for updates.

use botmesh_core::ProviderId;
use botmesh_telegram::{Recipient, testing};

use super::telegram_update;
use crate::memory::bounded;

pub(crate) fn run(bytes: &[u8]) {
    bounded(bytes, 256, 16 << 10, |bytes| {
        let to = Recipient::new(ProviderId::new("telegram").unwrap(), Some("fake_bot".to_owned()));
        for message in testing::messages(bytes, &to).unwrap_or_default() {
            assert!(message.id.is_some(), "a message without an id cannot be told from its copy");
            telegram_update::travels(&message);
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let updates = telegram_update::seeds();
    let mut seeds: Vec<Vec<u8>> = updates.chunks(3).map(answer).collect();
    let photo = |id: usize| {
        format!(
            r#"{{"update_id":{id},"message":{{"message_id":{id},"chat":{{"id":5,"type":"private"}},"media_group_id":"a","photo":[{{"file_id":"f{id}"}}]}}}}"#
        )
    };
    seeds.push(answer(&[photo(1).into_bytes(), photo(2).into_bytes()]));
    let refused =
        r#"{"ok":false,"error_code":429,"description":"no","parameters":{"retry_after":5}}"#;
    seeds.push(refused.as_bytes().to_vec());
    seeds
}

fn answer(updates: &[Vec<u8>]) -> Vec<u8> {
    let updates = updates.join(&b","[..]);
    [&b"{\"ok\":true,\"result\":["[..], &updates, b"]}"].concat()
}
