use std::sync::Arc;

use botmesh_core::message::{Attachment, AttachmentSource, MediaKind, Outgoing};
use serde_json::{Value, json};

use super::{MAX_CAPTION, entities, split};
use crate::api::{File, FileBytes, Request};

/// How many files an album has: <https://core.telegram.org/bots/api#sendmediagroup>.
const ALBUM: usize = 10;

/// The words of a message that go along with a file, and what stands out in them.
struct Caption<'a> {
    words: &'a str,
    entities: Option<Value>,
}

/// Adds the calls that send the attachments, and says whether the words went along as a caption.
pub(super) fn plan<'a>(
    message: &'a Outgoing,
    calls: &mut Vec<Request<'a>>,
) -> Result<bool, String> {
    let words = message.text.as_ref();
    let fits = !words.trim().is_empty() && split::length(words) <= MAX_CAPTION;
    let entities = entities::of(words, &message.spans, 0..words.len());
    let whole = Caption { words, entities };
    let mut captioned = false;
    let mut rest = &message.attachments[..];
    while let Some(first) = rest.first() {
        let (group, others) = rest.split_at(album(rest));
        rest = others;
        let caption = (fits && !captioned && first.kind != MediaKind::Sticker).then_some(&whole);
        captioned |= caption.is_some();
        calls.push(match group {
            [only] => single(only, caption)?,
            several => media_group(several, caption)?,
        });
    }
    Ok(captioned)
}

/// How many of the first attachments make one album.
fn album(attachments: &[Attachment]) -> usize {
    let Some(family) = attachments.first().and_then(|first| family(first.kind)) else { return 1 };
    let alike = attachments.iter().take_while(|next| self::family(next.kind) == Some(family));
    alike.take(ALBUM).count()
}

/// What goes into one album together: pictures and films, or files, or recordings.
const fn family(kind: MediaKind) -> Option<u8> {
    match kind {
        MediaKind::Image | MediaKind::Video => Some(0),
        MediaKind::Document => Some(1),
        MediaKind::Audio => Some(2),
        _ => None,
    }
}

fn single<'a>(
    attachment: &'a Attachment,
    caption: Option<&Caption<'a>>,
) -> Result<Request<'a>, String> {
    let (method, field) = match attachment.kind {
        MediaKind::Image => ("sendPhoto", "photo"),
        MediaKind::Video => ("sendVideo", "video"),
        MediaKind::Audio => ("sendAudio", "audio"),
        MediaKind::Voice => ("sendVoice", "voice"),
        MediaKind::Sticker => ("sendSticker", "sticker"),
        _ => ("sendDocument", "document"),
    };
    let mut call = Request::new(method);
    let source = source(attachment, &mut call)?;
    call.set(field, source);
    if let Some(caption) = caption {
        call.set("caption", caption.words);
        if let Some(entities) = &caption.entities {
            call.set("caption_entities", entities.clone());
        }
    }
    Ok(call)
}

fn media_group<'a>(
    attachments: &'a [Attachment],
    caption: Option<&Caption<'a>>,
) -> Result<Request<'a>, String> {
    let mut call = Request::new("sendMediaGroup");
    let mut media = Vec::with_capacity(attachments.len());
    for (number, attachment) in attachments.iter().enumerate() {
        let kind = match attachment.kind {
            MediaKind::Image => "photo",
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
            _ => "document",
        };
        let source = source(attachment, &mut call)?;
        let mut one = json!({ "type": kind, "media": source });
        if let (0, Some(caption)) = (number, caption) {
            one["caption"] = caption.words.into();
            if let Some(entities) = &caption.entities {
                one["caption_entities"] = entities.clone();
            }
        }
        media.push(one);
    }
    call.set("media", Value::Array(media));
    Ok(call)
}

/// What stands for the file in the call.
fn source(attachment: &Attachment, call: &mut Request<'_>) -> Result<String, String> {
    let bytes = match &attachment.source {
        AttachmentSource::Url(address) => return Ok(address.clone()),
        AttachmentSource::Reference(file) => return Ok(file.clone()),
        AttachmentSource::Path(path) => FileBytes::Path(path.clone()),
        AttachmentSource::Bytes(bytes) => FileBytes::Memory(Arc::clone(bytes)),
        _ => return Err("a file of this source cannot be sent".to_owned()),
    };
    let on_disk = match &bytes {
        FileBytes::Path(path) => path.file_name().and_then(|name| name.to_str()),
        FileBytes::Memory(_) => None,
    };
    let name = attachment.name.as_deref().or(on_disk).unwrap_or(name(attachment.kind)).to_owned();
    Ok(call.attach(File { bytes, name, mime: attachment.mime.clone() }))
}

/// A name for a file that has none: some clients tell the kind by it.
const fn name(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "picture.jpg",
        MediaKind::Video => "video.mp4",
        MediaKind::Audio => "audio.mp3",
        MediaKind::Voice => "voice.ogg",
        MediaKind::Sticker => "sticker.webp",
        _ => "file",
    }
}
