//! What Telegram delivers: <https://core.telegram.org/bots/api#update>.
//!
//! An update is read field by field out of its JSON. A field that is missing, unknown or of another
//! type than documented takes nothing with it but itself, and the whole stays with the message as
//! its raw payload.

mod content;
mod event;
mod node;
mod origin;

use botmesh_core::message::{ButtonPress, Content, RawPayload};
use botmesh_core::time::Timestamp;
use botmesh_core::{ChatKey, Message, MessageId, ProviderId};
use serde::de::Error as _;
use serde_json::Value;
use thiserror::Error;

use node::{Document, Node};
use origin::Origin;

/// The chat of updates that belong to no chat, such as the state of a poll.
pub(crate) const NO_CHAT: &str = "bot";

/// One thing that happened, as Telegram delivered it.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    id: i64,
    text: &'a str,
    told: Document<'a>,
}

/// Whom updates are read for.
#[derive(Debug, Clone)]
pub struct Recipient {
    provider: ProviderId,
    username: Option<String>,
}

/// Why a text is no update.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// It is not JSON, or nested too deeply.
    #[error("the update is not JSON that can be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It has no number.
    #[error("the update has no update_id")]
    NoId,
}

impl Recipient {
    /// Reads updates for the provider with this id and the bot with this user name, without `@`.
    #[must_use]
    pub const fn new(provider: ProviderId, username: Option<String>) -> Self {
        Self { provider, username }
    }

    /// Whether a command with this mention is for somebody else.
    fn is_other(&self, mention: &str) -> bool {
        self.username.as_ref().is_some_and(|own| !own.eq_ignore_ascii_case(mention))
    }
}

impl<'a> Update<'a> {
    /// Reads an update from its JSON.
    ///
    /// # Errors
    /// [`UpdateError`] when the text is no JSON object with an `update_id`. Nothing else in it is an
    /// error.
    pub fn from_json(json: &'a [u8]) -> Result<Self, UpdateError> {
        let text = str::from_utf8(json).map_err(serde_json::Error::custom)?;
        let told = Document::read(text)?;
        let id = told.root().get("update_id").as_i64().ok_or(UpdateError::NoId)?;
        Ok(Self { id, text, told })
    }

    /// The number of the update; numbers grow by one.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The documented name of what happened, such as `message`, and what is told of it.
    fn happening(&self) -> (&str, Node<'_, 'a>) {
        let happenings = self.told.root().fields().filter(|(name, _)| *name != "update_id");
        // At most one is present; of an unknown rest, whatever says most.
        let known = happenings.max_by_key(|(name, value)| (value.is_object(), *name));
        known.unwrap_or(("", Node::NULL))
    }

    /// The id by which a press of a button is answered.
    pub(crate) fn callback(&self) -> Option<&str> {
        self.told.root().get("callback_query").get("id").as_str()
    }

    /// The album that the message is a part of: its chat and its id.
    pub(crate) fn album(&self) -> Option<(i64, &str)> {
        let (name, message) = self.happening();
        if !matches!(name, "message" | "channel_post" | "business_message") {
            return None;
        }
        Some((message.get("chat").get("id").as_i64()?, message.get("media_group_id").as_str()?))
    }

    /// The update as a message to the bot.
    #[must_use]
    pub fn to_message(&self, to: &Recipient) -> Message {
        let (name, value) = self.happening();
        let own_id = || MessageId::new(format!("u{}", self.id)).ok();
        let (origin, id, content) = match name {
            "message" | "channel_post" => {
                (Origin::of_message(value), id_of(value), content::of_message(value, to))
            }
            "business_message" if Origin::is_owner(value) => {
                (Origin::of_message(value), own_id(), event::of_owner(value))
            }
            "business_message" => {
                (Origin::of_message(value), id_of(value), content::of_message(value, to))
            }
            "edited_message" | "edited_channel_post" | "edited_business_message" => {
                (Origin::of_message(value), own_id(), event::of_edit(value))
            }
            "callback_query" => (Origin::of_press(value), own_id(), press(value)),
            "message_reaction" => (Origin::of_action(value), own_id(), event::of_reaction(value)),
            _ => (Origin::of_action(value), own_id(), event::of_other(name, value)),
        };
        // What belongs to no chat is for a route: nobody could be answered.
        let content = if origin.has_place() { content } else { event::of_other(name, value) };
        let key = origin.key(&to.provider).or_else(|| ChatKey::new(&to.provider, NO_CHAT).ok());
        let Some(key) = key else { unreachable!("a provider id and a short word are a key") };
        let mut message = Message::new(key, content);
        message.id = id.or_else(own_id);
        message.sender = origin.sender;
        message.language = origin.language;
        message.sent_at = sent_at(value);
        message.reply_to = reply_to(value);
        message.raw = Some(RawPayload::from_json(self.text));
        message
    }
}

/// Puts the parts of an album together: one message with the id of the first, which has them all.
pub(crate) fn album(mut parts: Vec<Message>) -> Option<Message> {
    parts.sort_by_key(|part| part.id.as_ref().and_then(|id| id.as_str().parse::<i64>().ok()));
    parts.dedup_by(|second, first| second.id == first.id);
    if parts.len() < 2 {
        return parts.pop();
    }
    let raw = parts.iter().filter_map(|part| part.raw.as_ref().map(RawPayload::value).cloned());
    let raw: Vec<Value> = raw.collect();
    let mut first = None;
    let mut media = Vec::with_capacity(parts.len());
    for part in parts {
        match part.content.clone() {
            Content::Media(one) => media.push(one),
            Content::Album(more) => media.extend(more),
            _ => {}
        }
        first.get_or_insert(part);
    }
    let mut whole = first?;
    if !media.is_empty() {
        whole.content = Content::Album(media);
    }
    whole.raw = Some(Value::Array(raw).into());
    Some(whole)
}

fn id_of(message: Node<'_, '_>) -> Option<MessageId> {
    message_id(message.get("message_id"))
}

fn message_id(value: Node<'_, '_>) -> Option<MessageId> {
    MessageId::new(value.as_i64()?.to_string()).ok()
}

/// The time in the update, which is in seconds.
fn sent_at(value: Node<'_, '_>) -> Timestamp {
    let seconds =
        value.get("edit_date").as_u64().or_else(|| value.get("date").as_u64()).unwrap_or(0);
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

/// The message that this one answers. In a topic each message seems to answer the one that opened
/// the topic.
fn reply_to(message: Node<'_, '_>) -> Option<MessageId> {
    let answered = message.get("reply_to_message");
    if answered.get("forum_topic_created").is_told() { None } else { id_of(answered) }
}

fn press(query: Node<'_, '_>) -> Content {
    let Some(data) = query.get("data").as_str() else {
        return Content::Unsupported { kind: "callback_query".to_owned() };
    };
    let mut press = ButtonPress::new(data);
    let rows = query.get("message").get("reply_markup").get("inline_keyboard").list();
    let mut buttons = rows.flat_map(Node::list);
    let shown = buttons.find(|button| button.get("callback_data").as_str() == Some(data));
    press.label = shown.and_then(|button| button.get("text").as_str()).map(str::to_owned);
    press.message = id_of(query.get("message"));
    Content::Button(press)
}
