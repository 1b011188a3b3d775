//! Every kind of update of <https://core.telegram.org/bots/api#update>, from a file of its own: the
//! update, and the message that it is to a bot.

use std::collections::BTreeSet;
use std::path::Path;

use botmesh_core::ProviderId;
use botmesh_core::message::RawPayload;
use botmesh_telegram::{Recipient, Update};
use serde_json::Value;
use teloxide_core::types::UpdateKind;

fn fixtures() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/updates/fixtures");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        all.extend(cases.into_iter().map(|mut case| {
            case["update"]["update_id"] = 1.into();
            (name.clone(), case)
        }));
    }
    all
}

fn recipient() -> Recipient {
    Recipient::new(ProviderId::new("telegram").unwrap(), Some("fake_bot".to_owned()))
}

/// I1: every documented kind of update is the message that its fixture says, and has all of itself
/// as raw payload.
#[test]
fn every_kind_of_update_is_the_message_that_it_should_be() {
    for (name, case) in fixtures() {
        let text = case["update"].to_string();
        let update = Update::from_json(text.as_bytes()).unwrap();
        let message = update.to_message(&recipient());
        let content = serde_json::to_value(&message.content).unwrap();
        assert_eq!(content, case["content"], "the content of {name}: {}", case["update"]);
        assert_eq!(message.chat.as_str(), case["chat"], "the chat of {name}: {}", case["update"]);
        assert_eq!(message.id.as_ref().unwrap().as_str(), case["id"], "the id of {name}");
        let reply_to = message.reply_to.as_ref().map(|id| id.as_str());
        assert_eq!(reply_to, case["reply_to"].as_str(), "what {name} answers");
        if let Some(sender) = case["sender"].as_str() {
            let found = message.sender.as_ref().unwrap();
            assert_eq!(found.name.as_deref(), Some(sender), "the sender of {name}");
        }
        assert_eq!(
            message.raw.as_ref().map(RawPayload::value),
            Some(&case["update"]),
            "the payload of {name}"
        );
    }
}

/// I1: no documented kind is without a fixture.
#[test]
fn every_documented_kind_has_a_fixture() {
    const KINDS: [&str; 23] = [
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_connection",
        "business_message",
        "edited_business_message",
        "deleted_business_messages",
        "message_reaction",
        "message_reaction_count",
        "inline_query",
        "chosen_inline_result",
        "callback_query",
        "shipping_query",
        "pre_checkout_query",
        "purchased_paid_media",
        "poll",
        "poll_answer",
        "my_chat_member",
        "chat_member",
        "chat_join_request",
        "chat_boost",
        "removed_chat_boost",
    ];
    let fixtures = fixtures();
    let found: BTreeSet<&str> = fixtures
        .iter()
        .flat_map(|(_, case)| case["update"].as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    for kind in KINDS {
        assert!(found.contains(kind), "{kind} has no fixture");
    }
}

/// I1: a handler that wants all of an update reads it with teloxide's types.
#[test]
fn the_raw_payload_is_an_update_of_teloxide() {
    let said = fixtures().into_iter().find(|(name, _)| name == "message").unwrap().1;
    let text = said["update"].to_string();
    let message = Update::from_json(text.as_bytes()).unwrap();
    let raw = message.to_message(&recipient()).raw.unwrap();
    let text = raw.value().to_string();
    let typed: teloxide_core::types::Update = serde_json::from_str(&text).unwrap();
    assert!(matches!(typed.kind, UpdateKind::Message(_)), "{typed:?}");
}
