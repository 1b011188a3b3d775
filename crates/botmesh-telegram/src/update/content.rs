//! What a message says: <https://core.telegram.org/bots/api#message>.

use botmesh_core::message::{ChatEvent, Contact, Content, EventKind, Location, Media, MediaKind};

use super::Recipient;
use super::event;
use super::node::Node;
use super::origin::name;

/// What stands around the content of a message.
const ENVELOPE: &[&str] = &[
    "author_signature",
    "business_connection_id",
    "caption",
    "caption_entities",
    "chat",
    "date",
    "direct_messages_topic",
    "edit_date",
    "effect_id",
    "entities",
    "external_reply",
    "forward_origin",
    "from",
    "has_media_spoiler",
    "has_protected_content",
    "is_automatic_forward",
    "is_from_offline",
    "is_paid_post",
    "is_topic_message",
    "link_preview_options",
    "media_group_id",
    "message_id",
    "message_thread_id",
    "paid_star_count",
    "quote",
    "reply_markup",
    "reply_to_checklist_task_id",
    "reply_to_message",
    "reply_to_story",
    "sender_boost_count",
    "sender_business_bot",
    "sender_chat",
    "show_caption_above_media",
    "suggested_post_info",
    "via_bot",
];

/// The media of a message, in the order in which they are looked for: an animation is also told
/// as a document.
const MEDIA: &[(&str, MediaKind)] = &[
    ("animation", MediaKind::Video),
    ("video", MediaKind::Video),
    ("video_note", MediaKind::Video),
    ("audio", MediaKind::Audio),
    ("voice", MediaKind::Voice),
    ("sticker", MediaKind::Sticker),
    ("document", MediaKind::Document),
];

pub(super) fn of_message(message: Node<'_, '_>, to: &Recipient) -> Content {
    if let Some(text) = message.get("text").as_str() {
        return of_text(text, to);
    }
    if let Some(media) = of_media(message) {
        return Content::Media(media);
    }
    // A venue is also told as a location.
    let place = of_location(
        message.get("venue").get("location"),
        message.get("venue").get("title").as_str(),
    )
    .or_else(|| of_location(message.get("location"), None));
    if let Some(place) = place {
        return Content::Location(place);
    }
    if let Some(contact) = of_contact(message.get("contact")) {
        return Content::Contact(contact);
    }
    if let Some(happened) = event::of_service(message) {
        return Content::Event(happened);
    }
    Content::Unsupported { kind: unknown_kind(message).to_owned() }
}

fn of_text(text: &str, to: &Recipient) -> Content {
    let command = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    let mention = command.and_then(|command| command.split_once('@')).map(|(_, bot)| bot);
    if mention.is_some_and(|mention| to.is_other(mention)) {
        // Nobody has said anything to this bot.
        let kind = EventKind::Other("command_for_another_bot".to_owned());
        return Content::Event(ChatEvent::new(kind).with_detail(text));
    }
    Content::Text(text.to_owned())
}

fn of_media(message: Node<'_, '_>) -> Option<Media> {
    let (kind, file) = match largest(message.get("photo")) {
        Some(photo) => (MediaKind::Image, photo),
        None => MEDIA.iter().find_map(|(field, kind)| {
            let file = message.get(field);
            file.get("file_id").as_str().is_some().then_some((*kind, file))
        })?,
    };
    let mut media = Media::new(kind, file.get("file_id").as_str()?);
    media.caption = message.get("caption").as_str().map(str::to_owned);
    media.name = file.get("file_name").as_str().map(str::to_owned);
    media.mime = file.get("mime_type").as_str().map(str::to_owned);
    if kind == MediaKind::Image {
        // Telegram makes a JPEG of every photo, and does not say so.
        media.mime = Some("image/jpeg".to_owned());
    }
    media.size = file.get("file_size").as_u64();
    Some(media)
}

/// A photo is told in several sizes.
fn largest<'n, 'a>(sizes: Node<'n, 'a>) -> Option<Node<'n, 'a>> {
    let sizes = sizes.list().filter(|size| size.get("file_id").as_str().is_some());
    sizes.max_by_key(|size| {
        let length = |field: &str| size.get(field).as_u64().unwrap_or(0);
        length("width").saturating_mul(length("height"))
    })
}

fn of_location(at: Node<'_, '_>, name: Option<&str>) -> Option<Location> {
    Some(Location {
        latitude: at.get("latitude").as_f64()?,
        longitude: at.get("longitude").as_f64()?,
        name: name.map(str::to_owned),
    })
}

fn of_contact(contact: Node<'_, '_>) -> Option<Contact> {
    let phone = contact.get("phone_number").as_str().map(str::to_owned);
    Some(Contact { name: name(contact)?, phone })
}

/// The field that is not around the content; the first by name, for nothing says which it is.
fn unknown_kind<'n>(message: Node<'n, '_>) -> &'n str {
    let names = message.fields().map(|(name, _)| name);
    names.filter(|name| ENVELOPE.binary_search(name).is_err()).min().unwrap_or("message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_sorted_as_its_search_needs() {
        assert!(ENVELOPE.is_sorted());
    }
}
