use botmesh_core::MessageId;
use botmesh_core::message::{Attachment, AttachmentSource, MediaKind, OutgoingButton};

use super::*;

fn planned(message: &Outgoing) -> Vec<(String, Value)> {
    let to = Address::chat(7);
    let calls = plan(&to, message).unwrap();
    let told = |call: &Request<'_>| serde_json::to_value(call.fields()).unwrap();
    calls.iter().map(|call| (call.method().to_owned(), told(call))).collect()
}

fn methods(message: &Outgoing) -> Vec<String> {
    planned(message).into_iter().map(|(method, _)| method).collect()
}

fn stored(kind: MediaKind) -> Attachment {
    Attachment::new(kind, AttachmentSource::Reference("file".to_owned()))
}

/// I1: a message goes where it belongs, also in a topic and for a business account.
#[test]
fn a_call_says_chat_topic_and_connection() {
    let to = Address { chat: -100, topic: Some(5), business: Some("bc".to_owned()) };
    let mut message = Outgoing::text("hi");
    message.reply_to = Some(MessageId::new("9").unwrap());
    let calls = plan(&to, &message).unwrap();
    assert_eq!(
        serde_json::to_value(calls[0].fields()).unwrap(),
        json!({
            "business_connection_id": "bc",
            "chat_id": -100,
            "message_thread_id": 5,
            "reply_parameters": { "message_id": 9, "allow_sending_without_reply": true },
            "text": "hi",
        })
    );
    message.reply_to = Some(MessageId::new("u9").unwrap());
    assert!(plan(&to, &message).unwrap_err().contains("u9"));
}

/// A8: short buttons share a row, and the last message of several has them.
#[test]
fn buttons_come_in_rows_below_the_last_part() {
    let mut message = Outgoing::text(format!("{} {}", "x".repeat(4000), "y".repeat(4000)));
    message.buttons = ["1", "2", "A label that needs a row of its own", "3"]
        .map(|label| OutgoingButton::new(label, label))
        .into();
    let calls = planned(&message);
    assert_eq!(calls.len(), 2);
    assert!(calls[0].1.get("reply_markup").is_none());
    let rows = calls[1].1["reply_markup"]["inline_keyboard"].as_array().unwrap();
    let counts: Vec<usize> = rows.iter().map(|row| row.as_array().unwrap().len()).collect();
    assert_eq!(counts, [2, 1, 1]);
}

/// A8: a payload that Telegram would refuse is an error that says why, before anything is sent.
#[test]
fn a_payload_that_is_too_long_is_refused_by_name() {
    let mut message = Outgoing::text("which?");
    message.buttons = vec![OutgoingButton::new("Big", "ñ".repeat(33))];
    let reason = plan(&Address::chat(7), &message).unwrap_err();
    assert!(reason.contains("Big") && reason.contains("66 bytes"), "{reason}");
}

/// I1: pictures and films are albums of at most ten, with one caption.
#[test]
fn several_pictures_are_one_album() {
    let mut message = Outgoing::text("our holidays");
    message.attachments = vec![stored(MediaKind::Image); 11];
    message.attachments.push(stored(MediaKind::Video));
    message.attachments.push(stored(MediaKind::Document));
    assert_eq!(methods(&message), ["sendMediaGroup", "sendMediaGroup", "sendDocument"]);
    let calls = planned(&message);
    let media = calls[0].1["media"].as_array().unwrap();
    assert_eq!(media.len(), 10);
    assert_eq!(media[0]["caption"], "our holidays");
    assert!(media[1].get("caption").is_none());
    assert_eq!(calls[1].1["media"].as_array().unwrap().len(), 2);
    assert!(calls[2].1.get("caption").is_none());
}

/// I1: a caption that is too long, or that cannot be one, is a message of its own.
#[test]
fn a_long_caption_becomes_a_message() {
    let mut message = Outgoing::text("z".repeat(1025));
    message.attachments = vec![stored(MediaKind::Image)];
    assert_eq!(methods(&message), ["sendPhoto", "sendMessage"]);
    let mut message = Outgoing::text("hello");
    message.attachments = vec![stored(MediaKind::Sticker)];
    assert_eq!(methods(&message), ["sendSticker", "sendMessage"]);
}

#[test]
fn nothing_and_far_too_much_are_refused() {
    assert!(plan(&Address::chat(7), &Outgoing::text(" \n")).is_err());
    let giant = Outgoing::text("x".repeat(MAX_TEXT * 17));
    assert!(plan(&Address::chat(7), &giant).unwrap_err().contains("characters"));
}
