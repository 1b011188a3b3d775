//! What a message becomes on its way to Telegram: one call or several, in order.

mod entities;
mod keyboard;
mod media;
mod split;

use botmesh_core::message::{Location, Outgoing};
use botmesh_core::provider::ChoiceLimits;
use serde_json::{Value, json};

use crate::address::Address;
use crate::api::Request;

/// The longest text of one message: <https://core.telegram.org/bots/api#sendmessage>.
pub(crate) const MAX_TEXT: usize = 4096;

/// How many buttons Telegram shows below one message; how long a label may be is not documented.
pub(crate) const BUTTONS: ChoiceLimits = ChoiceLimits::new(100, usize::MAX);

/// The longest caption: <https://core.telegram.org/bots/api#sendphoto>.
const MAX_CAPTION: usize = 1024;

/// A text that becomes more messages than this is refused: Telegram would slow the chat down.
const MAX_PARTS: usize = 16;

/// The calls that send `message`. The first answers what the message answers, and the last that can
/// has the buttons.
///
/// # Errors
/// Why Telegram would refuse the message, in words.
pub(crate) fn plan<'a>(to: &'a Address, message: &'a Outgoing) -> Result<Vec<Request<'a>>, String> {
    let keyboard = keyboard::of(&message.buttons)?;
    let mut calls = Vec::new();
    let words = message.text.as_ref();
    let mut captioned = false;
    if !message.attachments.is_empty() {
        captioned = media::plan(message, &mut calls)?;
    }
    let texts = if captioned { "" } else { words };
    for (number, part) in split::parts(texts, MAX_TEXT).enumerate() {
        if number == MAX_PARTS {
            let length = words.chars().count();
            return Err(format!(
                "the text has {length} characters: at most {MAX_PARTS} messages are made of one"
            ));
        }
        let mut call = Request::new("sendMessage");
        call.set("text", &words[part.clone()]);
        if let Some(entities) = entities::of(words, &message.spans, part) {
            call.set("entities", entities);
        }
        calls.push(call);
    }
    calls.extend(message.location.as_ref().map(place));
    if let Some(keyboard) = keyboard {
        match calls.iter_mut().rev().find(|call| call.method() != "sendMediaGroup") {
            Some(call) => call.set("reply_markup", keyboard),
            None => return Err("buttons need words, a file of their own or a place".to_owned()),
        }
    }
    let Some(first) = calls.first_mut() else { return Err("the message is empty".to_owned()) };
    if let Some(answered) = &message.reply_to {
        let id: i64 = answered.as_str().parse().map_err(|_| no_message(answered.as_str()))?;
        // What was deleted meanwhile is answered all the same.
        let parameters = json!({ "message_id": id, "allow_sending_without_reply": true });
        first.set("reply_parameters", parameters);
    }
    for call in &mut calls {
        direct(call, to);
    }
    Ok(calls)
}

/// Sets where a call goes.
pub(crate) fn direct<'a>(call: &mut Request<'a>, to: &'a Address) {
    call.set("chat_id", to.chat);
    if let Some(topic) = to.topic {
        call.set("message_thread_id", i64::from(topic));
    }
    if let Some(business) = &to.business {
        call.set("business_connection_id", business.as_str());
    }
}

/// The call that replaces what a message says; with `caption`, that of a picture or a file.
pub(crate) fn edit<'a>(
    to: &'a Address,
    message: i64,
    new: &'a Outgoing,
    caption: bool,
) -> Result<Request<'a>, String> {
    if !new.attachments.is_empty() || new.location.is_some() {
        return Err("an edit changes words and buttons: send files and places anew".to_owned());
    }
    let (method, field, formatting, most) = match caption {
        true => ("editMessageCaption", "caption", "caption_entities", MAX_CAPTION),
        false => ("editMessageText", "text", "entities", MAX_TEXT),
    };
    if split::length(&new.text) > most {
        return Err(format!("an edited message has at most {most} characters"));
    }
    if new.text.trim().is_empty() {
        return Err("the message is empty".to_owned());
    }
    let mut call = Request::new(method);
    direct(&mut call, to);
    call.set("message_id", message);
    call.set(field, new.text.as_ref());
    if let Some(entities) = entities::of(&new.text, &new.spans, 0..new.text.len()) {
        call.set(formatting, entities);
    }
    if let Some(keyboard) = keyboard::of(&new.buttons)? {
        call.set("reply_markup", keyboard);
    }
    Ok(call)
}

/// The call that deletes a message.
pub(crate) fn deletion(to: &Address, message: i64) -> Request<'_> {
    let mut call = Request::new("deleteMessage");
    call.set("chat_id", to.chat);
    call.set("message_id", message);
    call
}

/// The call that reacts to a message, or takes the reaction back.
pub(crate) fn reaction<'a>(to: &'a Address, message: i64, emoji: Option<&str>) -> Request<'a> {
    let mut call = Request::new("setMessageReaction");
    call.set("chat_id", to.chat);
    call.set("message_id", message);
    let emoji = emoji.map(|emoji| json!({ "type": "emoji", "emoji": emoji }));
    call.set("reaction", Value::from_iter(emoji));
    call
}

pub(crate) fn no_message(id: &str) -> String {
    format!("{id:?} is no message of a chat")
}

fn place(place: &Location) -> Request<'_> {
    let mut call = match &place.name {
        None => Request::new("sendLocation"),
        Some(name) => {
            let mut call = Request::new("sendVenue");
            call.set("title", name.as_str());
            // Telegram wants an address and shows it below the name.
            call.set("address", format!("{}, {}", place.latitude, place.longitude));
            call
        }
    };
    call.set("latitude", Value::from(place.latitude));
    call.set("longitude", Value::from(place.longitude));
    call
}

/// The id of the last message that a call made.
pub(crate) fn last_message(result: &Value) -> Option<i64> {
    match result {
        Value::Array(all) => all.last().and_then(last_message),
        one => one["message_id"].as_i64(),
    }
}

#[cfg(test)]
mod tests;
