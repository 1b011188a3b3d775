//! Messages as they travel between replicas.

use botmesh_core::Message;

use super::telegram_update;
use crate::memory::bounded;

pub(crate) fn run(bytes: &[u8]) {
    bounded(bytes, 256, 16 << 10, |bytes| {
        if let Ok(message) = serde_json::from_slice::<Message>(bytes) {
            let _ = (message.body(), message.user());
            telegram_update::travels(&message);
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let updates = telegram_update::seeds();
    let messages = updates.iter().filter_map(|update| telegram_update::read(update));
    messages.map(|message| serde_json::to_vec(&message).unwrap()).collect()
}
