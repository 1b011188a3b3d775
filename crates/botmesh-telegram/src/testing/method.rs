//! The methods that take a message, and what they refuse.

use serde_json::{Value, json};

use super::answer::Refusal;
use super::state::{Inner, State, Webhook};
use super::{Call, FakeTelegram};

/// Carries out a call.
pub(super) fn carry_out(state: &State, call: &mut Call) -> Result<Value, Refusal> {
    match call.method.as_str() {
        "getMe" => Ok(FakeTelegram::me()),
        "setWebhook" => set_webhook(state, call),
        "deleteWebhook" => {
            state.change(|inner| inner.webhook = None);
            Ok(true.into())
        }
        "getFile" => {
            let id = call.fields["file_id"].as_str().unwrap_or_default();
            if id.is_empty() {
                return Err(Refusal::bad("file_id not specified"));
            }
            Ok(json!({ "file_id": id, "file_unique_id": "u", "file_path": "photos/file_0.jpg" }))
        }
        "answerCallbackQuery" | "setMyCommands" => Ok(true.into()),
        _ => state.change(|inner| in_chat(inner, call)),
    }
}

fn set_webhook(state: &State, call: &Call) -> Result<Value, Refusal> {
    let url = call.fields["url"].as_str().unwrap_or_default().to_owned();
    let secret = call.fields["secret_token"].as_str().unwrap_or_default().to_owned();
    let connections =
        call.number("max_connections").and_then(|number| usize::try_from(number).ok());
    let webhook = Webhook { url, secret, connections: connections.unwrap_or(40) };
    state.change(|inner| inner.webhook = Some(webhook));
    Ok(true.into())
}

fn in_chat(inner: &mut Inner, call: &mut Call) -> Result<Value, Refusal> {
    if !inner.known.contains(&call.chat) {
        return Err(Refusal::bad("chat not found"));
    }
    match call.method.as_str() {
        "sendMessage" => {
            check_text(&call.fields["text"], 4096, "message text is empty", "message is too long")?;
            check_buttons(call)?;
            let text = call.fields["text"].clone();
            Ok(make(inner, call, json!({ "text": text })))
        }
        "sendPhoto" | "sendVideo" | "sendAudio" | "sendVoice" | "sendDocument" | "sendSticker" => {
            let field = call.method[4..].to_lowercase();
            check_file(call, call.fields[field.as_str()].as_str())?;
            check_caption(&call.fields["caption"])?;
            check_buttons(call)?;
            let caption = call.fields["caption"].clone();
            Ok(make(inner, call, json!({ "caption": caption })))
        }
        "sendMediaGroup" => {
            let media = call.json("media").as_array().cloned().unwrap_or_default();
            if !(2..=10).contains(&media.len()) {
                return Err(Refusal::bad("wrong number of media in the album"));
            }
            for one in &media {
                check_file(call, one["media"].as_str())?;
                check_caption(&one["caption"])?;
            }
            Ok(media.iter().map(|_| make(inner, call, json!({}))).collect())
        }
        "sendLocation" | "sendVenue" => {
            let at = |field: &str| call.fields[field].as_f64();
            if at("latitude").is_none() || at("longitude").is_none() {
                return Err(Refusal::bad("latitude and longitude are wanted"));
            }
            if call.method == "sendVenue"
                && call.fields["address"].as_str().is_none_or(str::is_empty)
            {
                return Err(Refusal::bad("address must be non-empty"));
            }
            Ok(make(inner, call, json!({ "location": {} })))
        }
        "editMessageText" => {
            check_text(&call.fields["text"], 4096, "message text is empty", "message is too long")?;
            edit(inner, call, "text")
        }
        "editMessageCaption" => {
            check_caption(&call.fields["caption"])?;
            edit(inner, call, "caption")
        }
        "deleteMessage" => {
            let message = call.number("message_id").unwrap_or_default();
            match inner.messages.remove(&(call.chat, message)) {
                Some(_) => Ok(true.into()),
                None => Err(Refusal::bad("message to delete not found")),
            }
        }
        "setMessageReaction" | "sendChatAction" => Ok(true.into()),
        _ => Err(Refusal(404, "Not Found".to_owned(), Value::Null)),
    }
}

fn make(inner: &mut Inner, call: &mut Call, content: Value) -> Value {
    let id = inner.next_message(call.chat);
    let kind = if call.chat > 0 { "private" } else { "supergroup" };
    let mut message = json!({
        "message_id": id,
        "from": FakeTelegram::me(),
        "chat": { "id": call.chat, "type": kind },
        "date": 1_790_000_000,
    });
    if let Some(topic) = call.number("message_thread_id") {
        message["message_thread_id"] = topic.into();
        message["is_topic_message"] = true.into();
    }
    for (field, value) in content.as_object().into_iter().flatten().filter(|(_, it)| !it.is_null())
    {
        message[field] = value.clone();
    }
    let markup = call.json("reply_markup");
    if markup.is_object() {
        message["reply_markup"] = markup;
    }
    inner.messages.insert((call.chat, id), message.clone());
    call.made.push(id);
    message
}

fn edit(inner: &mut Inner, call: &Call, field: &str) -> Result<Value, Refusal> {
    let id = call.number("message_id").unwrap_or_default();
    let Some(message) = inner.messages.get_mut(&(call.chat, id)) else {
        return Err(Refusal::bad("message to edit not found"));
    };
    if field == "text" && message.get("text").is_none() {
        return Err(Refusal::bad("there is no text in the message to edit"));
    }
    let markup = call.json("reply_markup");
    if message[field] == call.fields[field] && message["reply_markup"] == markup {
        return Err(Refusal::bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        ));
    }
    message[field] = call.fields[field].clone();
    message["reply_markup"] = markup;
    Ok(message.clone())
}

fn check_text(text: &Value, most: usize, empty: &str, long: &str) -> Result<(), Refusal> {
    let text = text.as_str().unwrap_or_default();
    // Whatever shows nothing is nothing.
    if text.chars().all(|c| c.is_whitespace() || c.is_control() || c == '\u{200b}') {
        return Err(Refusal::bad(empty));
    }
    if text.encode_utf16().count() > most { Err(Refusal::bad(long)) } else { Ok(()) }
}

fn check_caption(caption: &Value) -> Result<(), Refusal> {
    let length = caption.as_str().unwrap_or_default().encode_utf16().count();
    if length > 1024 { Err(Refusal::bad("message caption is too long")) } else { Ok(()) }
}

fn check_file(call: &Call, file: Option<&str>) -> Result<(), Refusal> {
    let file = file.unwrap_or_default();
    let missing = file.strip_prefix("attach://file").is_some_and(|number| {
        number
            .parse::<usize>()
            .ok()
            .and_then(|number| call.files.get(number))
            .is_none_or(|n| *n == 0)
    });
    if file.is_empty() || missing { Err(Refusal::bad("file must be non-empty")) } else { Ok(()) }
}

fn check_buttons(call: &Call) -> Result<(), Refusal> {
    let rows = call.json("reply_markup")["inline_keyboard"].as_array().cloned();
    for button in rows.iter().flatten().filter_map(Value::as_array).flatten() {
        let data = button["callback_data"].as_str().unwrap_or_default();
        if data.is_empty() || data.len() > 64 {
            return Err(Refusal::bad("BUTTON_DATA_INVALID"));
        }
    }
    Ok(())
}
