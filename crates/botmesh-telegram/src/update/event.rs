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

pub(super) fn of_service(message: Node<'_, '_>) -> Option<ChatEvent> {
    let joined = message.get("new_chat_members");
    if joined.is_list() {
        let names: Vec<String> = joined.list().filter_map(name).collect();
        return Some(ChatEvent::new(EventKind::Joined).with_detail(names.join(", ")));
    }
    if message.get("left_chat_member").is_object() {
        let mut left = ChatEvent::new(EventKind::Left);
        left.detail = name(message.get("left_chat_member"));
        return Some(left);
    }
    let kind = SERVICE.iter().find(|field| message.get(field).is_told())?;
    let mut event = ChatEvent::new(EventKind::Other((*kind).to_owned()));
    event.detail = detail(message.get(kind));
    Some(event)
}

/// A message of ours or of a user has another content now.
pub(super) fn of_edit(message: Node<'_, '_>) -> Content {
    let mut event = ChatEvent::new(EventKind::Edited);
    let words = message.get("text").as_str().or_else(|| message.get("caption").as_str());
    event.detail = words.map(str::to_owned);
    event.message = message_id(message.get("message_id"));
    Content::Event(event)
}

/// The owner of a business account wrote to a customer: nobody has asked the bot.
pub(super) fn of_owner(message: Node<'_, '_>) -> Content {
    let mut event = ChatEvent::new(EventKind::Other("business_owner_message".to_owned()));
    event.detail = message.get("text").as_str().map(str::to_owned);
    event.message = message_id(message.get("message_id"));
    Content::Event(event)
}

/// <https://core.telegram.org/bots/api#messagereactionupdated>
pub(super) fn of_reaction(update: Node<'_, '_>) -> Content {
    let (old, new) = (update.get("old_reaction"), update.get("new_reaction"));
    let is_new = |reaction: &Node<'_, '_>| old.list().all(|known| known != *reaction);
    let added = new.list().find(is_new).or_else(|| new.list().next());
    let emoji = added.and_then(|reaction| {
        let word = ["emoji", "custom_emoji_id", "type"].iter();
        word.filter_map(|field| reaction.get(field).as_str()).next().map(str::to_owned)
    });
    match message_id(update.get("message_id")) {
        Some(message) => Content::Reaction(Reaction { message, emoji }),
        None => of_other("message_reaction", update),
    }
}

/// Any other kind of update, known or not.
pub(super) fn of_other(kind: &str, update: Node<'_, '_>) -> Content {
    let event = match kind {
        "my_chat_member" => of_own_membership(update),
        "chat_member" => of_membership(update),
        "deleted_business_messages" => of_deletion(update),
        _ => {
            let mut event = ChatEvent::new(EventKind::Other(kind.to_owned()));
            event.detail = detail(update);
            event.message = message_id(update.get("message_id"));
            event
        }
    };
    Content::Event(event)
}

/// The bot itself was added, removed, blocked or unblocked.
fn of_own_membership(update: Node<'_, '_>) -> ChatEvent {
    let private = update.get("chat").get("type").as_str() == Some("private");
    let kind = match (is_in(update.get("old_chat_member")), is_in(update.get("new_chat_member"))) {
        (_, false) => EventKind::Stopped,
        (false, true) if !private => EventKind::Started,
        // Who unblocks the bot says /start next, which is what starts the chat.
        (false, true) => EventKind::Other("unblocked".to_owned()),
        (true, true) => EventKind::Other("my_chat_member".to_owned()),
    };
    let mut event = ChatEvent::new(kind);
    event.detail = update.get("new_chat_member").get("status").as_str().map(str::to_owned);
    event
}

fn of_membership(update: Node<'_, '_>) -> ChatEvent {
    let kind = match (is_in(update.get("old_chat_member")), is_in(update.get("new_chat_member"))) {
        (false, true) => EventKind::Joined,
        (true, false) => EventKind::Left,
        _ => EventKind::Other("chat_member".to_owned()),
    };
    let mut event = ChatEvent::new(kind);
    event.detail = name(update.get("new_chat_member").get("user"));
    event
}

/// <https://core.telegram.org/bots/api#chatmember>
fn is_in(member: Node<'_, '_>) -> bool {
    match member.get("status").as_str() {
        Some("left" | "kicked") | None => false,
        Some("restricted") => member.get("is_member").is_true(),
        Some(_) => true,
    }
}

fn of_deletion(update: Node<'_, '_>) -> ChatEvent {
    let ids = update.get("message_ids");
    let words: Vec<String> = ids.list().filter_map(Node::as_i64).map(|id| id.to_string()).collect();
    let mut event = ChatEvent::new(EventKind::Deleted).with_detail(words.join(","));
    let mut all = ids.list();
    if let (Some(only), None) = (all.next(), all.next()) {
        event.message = message_id(only);
    }
    event
}

/// The words in what is told, where there are some.
fn detail(value: Node<'_, '_>) -> Option<String> {
    if let Some(number) = value.as_number() {
        return Some(number.to_string());
    }
    let fields = ["query", "invoice_payload", "question", "name", "text", "data", "id"];
    let words = || fields.iter().find_map(|field| value.get(field).as_str());
    value.as_str().or_else(words).map(str::to_owned)
}
