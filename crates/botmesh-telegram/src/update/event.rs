//! What happens rather than being said.

use botmesh_core::message::{ChatEvent, Content, EventKind, Reaction};

use super::message_id;
use super::node::Node;
use super::origin::name;

/// The service messages of <https://core.telegram.org/bots/api#message> that have no kind of their
/// own here.
const SERVICE: &[&str] = &[
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "chat_shared",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "passport_data",
    "pinned_message",
    "proximity_alert_triggered",
    "refunded_payment",
    "successful_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "unique_gift",
    "users_shared",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "web_app_data",
    "write_access_allowed",
];

pub(super) fn of_service(message: &Node<'_>) -> Option<ChatEvent> {
    if let Some(members) = message["new_chat_members"].as_array() {
        let names: Vec<String> = members.iter().filter_map(name).collect();
        return Some(ChatEvent::new(EventKind::Joined).with_detail(names.join(", ")));
    }
    if message["left_chat_member"].is_object() {
        let mut left = ChatEvent::new(EventKind::Left);
        left.detail = name(&message["left_chat_member"]);
        return Some(left);
    }
    let kind = SERVICE.iter().find(|field| message.get(field).is_some())?;
    let mut event = ChatEvent::new(EventKind::Other((*kind).to_owned()));
    event.detail = detail(&message[*kind]);
    Some(event)
}

/// A message of ours or of a user has another content now.
pub(super) fn of_edit(message: &Node<'_>) -> Content {
    let mut event = ChatEvent::new(EventKind::Edited);
    let words = message["text"].as_str().or_else(|| message["caption"].as_str());
    event.detail = words.map(str::to_owned);
    event.message = message_id(&message["message_id"]);
    Content::Event(event)
}

/// The owner of a business account wrote to a customer: nobody has asked the bot.
pub(super) fn of_owner(message: &Node<'_>) -> Content {
    let mut event = ChatEvent::new(EventKind::Other("business_owner_message".to_owned()));
    event.detail = message["text"].as_str().map(str::to_owned);
    event.message = message_id(&message["message_id"]);
    Content::Event(event)
}

/// <https://core.telegram.org/bots/api#messagereactionupdated>
pub(super) fn of_reaction(update: &Node<'_>) -> Content {
    let list = |field: &str| update[field].as_array().unwrap_or_default();
    let (old, new) = (list("old_reaction"), list("new_reaction"));
    let added = new.iter().find(|reaction| !old.contains(reaction)).or_else(|| new.first());
    let emoji = added.and_then(|reaction| {
        let word = ["emoji", "custom_emoji_id", "type"].iter();
        word.filter_map(|field| reaction[*field].as_str()).next().map(str::to_owned)
    });
    match message_id(&update["message_id"]) {
        Some(message) => Content::Reaction(Reaction { message, emoji }),
        None => of_other("message_reaction", update),
    }
}

/// Any other kind of update, known or not.
pub(super) fn of_other(kind: &str, update: &Node<'_>) -> Content {
    let event = match kind {
        "my_chat_member" => of_own_membership(update),
        "chat_member" => of_membership(update),
        "deleted_business_messages" => of_deletion(update),
        _ => {
            let mut event = ChatEvent::new(EventKind::Other(kind.to_owned()));
            event.detail = detail(update);
            event.message = message_id(&update["message_id"]);
            event
        }
    };
    Content::Event(event)
}

/// The bot itself was added, removed, blocked or unblocked.
fn of_own_membership(update: &Node<'_>) -> ChatEvent {
    let private = update["chat"]["type"].as_str() == Some("private");
    let kind = match (is_in(&update["old_chat_member"]), is_in(&update["new_chat_member"])) {
        (_, false) => EventKind::Stopped,
        (false, true) if !private => EventKind::Started,
        // Who unblocks the bot says /start next, which is what starts the chat.
        (false, true) => EventKind::Other("unblocked".to_owned()),
        (true, true) => EventKind::Other("my_chat_member".to_owned()),
    };
    let mut event = ChatEvent::new(kind);
    event.detail = update["new_chat_member"]["status"].as_str().map(str::to_owned);
    event
}

fn of_membership(update: &Node<'_>) -> ChatEvent {
    let kind = match (is_in(&update["old_chat_member"]), is_in(&update["new_chat_member"])) {
        (false, true) => EventKind::Joined,
        (true, false) => EventKind::Left,
        _ => EventKind::Other("chat_member".to_owned()),
    };
    let mut event = ChatEvent::new(kind);
    event.detail = name(&update["new_chat_member"]["user"]);
    event
}

/// <https://core.telegram.org/bots/api#chatmember>
fn is_in(member: &Node<'_>) -> bool {
    match member["status"].as_str() {
        Some("left" | "kicked") | None => false,
        Some("restricted") => member["is_member"].is_true(),
        Some(_) => true,
    }
}

fn of_deletion(update: &Node<'_>) -> ChatEvent {
    let ids = update["message_ids"].as_array().unwrap_or_default();
    let words: Vec<String> = ids.iter().filter_map(Node::as_i64).map(|id| id.to_string()).collect();
    let mut event = ChatEvent::new(EventKind::Deleted).with_detail(words.join(","));
    if let [only] = ids {
        event.message = message_id(only);
    }
    event
}

/// The words in what is told, where there are some.
fn detail(value: &Node<'_>) -> Option<String> {
    match value {
        Node::Text(text) => Some(text.to_string()),
        Node::Number(number) => Some(number.to_string()),
        _ => ["query", "invoice_payload", "question", "name", "text", "data", "id"]
            .iter()
            .find_map(|field| value[*field].as_str())
            .map(str::to_owned),
    }
}
