//! What is no update, or hardly one.

use botmesh_core::ProviderId;
use botmesh_telegram::{Recipient, Update};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON, with the names that an update has.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["private", "supergroup", "kicked", "/start@x"])
            .prop_map(Value::from),
    ];
    let name = prop_oneof![
        4 => prop::sample::select(vec![
            "message", "edited_message", "callback_query", "my_chat_member", "message_reaction",
            "chat", "from", "id", "type", "text", "photo", "document", "file_id", "location",
            "latitude", "longitude", "data", "message_id", "message_thread_id", "is_topic_message",
            "business_connection_id", "media_group_id", "reply_to_message", "new_chat_members",
            "reply_markup", "inline_keyboard", "callback_data", "date", "language_code",
        ]).prop_map(str::to_owned),
        1 => ".{0,8}",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn recipient() -> Recipient {
    Recipient::new(ProviderId::new("telegram").unwrap(), Some("fake_bot".to_owned()))
}

proptest! {
    /// I1: no bytes make the parser panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(update) = Update::from_json(&bytes) {
            let _ = update.to_message(&recipient());
        }
    }

    /// I1: whatever is in an update, it is a message with an id, and its payload is kept.
    #[test]
    fn any_update_is_a_message(id: i64, mut value in any_json()) {
        if !value.is_object() {
            value = json!({ "message": value });
        }
        value["update_id"] = id.into();
        let text = value.to_string();
        let update = Update::from_json(text.as_bytes()).unwrap();
        prop_assert_eq!(update.id(), id);
        let message = update.to_message(&recipient());
        prop_assert!(message.id.is_some());
        prop_assert_eq!(message.chat.provider(), "telegram");
        prop_assert!(message.raw.is_some());
    }

    /// I1: an update that is cut anywhere is no update.
    #[test]
    fn a_truncated_update_is_refused(cut in 1usize..100) {
        let whole = json!({
            "update_id": 5,
            "message": { "message_id": 1, "chat": { "id": 4, "type": "private" }, "text": "ñandú" },
        });
        let whole = whole.to_string().into_bytes();
        let cut = cut.min(whole.len());
        prop_assert!(Update::from_json(&whole[..whole.len() - cut]).is_err());
    }
}
