//! What one answer to `getUpdates` has in it.

use botmesh_core::Message;
use serde_json::value::RawValue;

use crate::update::{self, Recipient, Update};

/// The updates of an answer, in order.
pub(crate) struct Batch<'a> {
    pub(crate) updates: Vec<Update<'a>>,
    /// Why an update is left out, with its number where that can be told.
    pub(crate) unreadable: Vec<(Option<i64>, String)>,
}

/// One message to hand over, made of one update or of the parts of an album.
pub(crate) struct Parcel {
    pub(crate) ids: Vec<i64>,
    pub(crate) message: Message,
    pub(crate) callback: Option<String>,
    pub(crate) album: Option<(i64, String)>,
}

/// The updates in a result; none if it is no list.
pub(crate) fn read(result: &RawValue) -> Option<Batch<'_>> {
    let all: Vec<&RawValue> = serde_json::from_str(result.get()).ok()?;
    let mut batch = Batch { updates: Vec::with_capacity(all.len()), unreadable: Vec::new() };
    for one in all {
        match Update::from_json(one.get().as_bytes()) {
            Ok(update) => batch.updates.push(update),
            Err(error) => {
                batch.unreadable.push((first_id(one.get().as_bytes()), error.to_string()));
            }
        }
    }
    // They come in order; whoever answers otherwise shall not make the offset go back.
    batch.updates.sort_by_key(Update::id);
    batch.updates.dedup_by_key(|update| update.id());
    Some(batch)
}

/// The number of the first update in a text that cannot be read as a whole.
pub(crate) fn first_id(text: &[u8]) -> Option<i64> {
    const NAME: &[u8] = b"\"update_id\"";
    let at = text.windows(NAME.len()).position(|part| part == NAME)?;
    let rest = text[at + NAME.len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// The messages that the updates make, albums as one.
pub(crate) fn parcels(updates: Vec<Update<'_>>, to: &Recipient) -> Vec<Parcel> {
    let mut parcels: Vec<Parcel> = Vec::with_capacity(updates.len());
    let mut parts: Vec<Vec<Message>> = Vec::new();
    for update in updates {
        let message = update.to_message(to);
        let album = update.album().map(|(chat, id)| (chat, id.to_owned()));
        let known = album.as_ref().and_then(|album| {
            parcels.iter().position(|parcel| parcel.album.as_ref() == Some(album))
        });
        match known {
            Some(place) => {
                parcels[place].ids.push(update.id());
                parts[place].push(message);
            }
            None => {
                parts.push(if album.is_some() { vec![message.clone()] } else { Vec::new() });
                parcels.push(Parcel {
                    ids: vec![update.id()],
                    message,
                    callback: update.callback().map(str::to_owned),
                    album,
                });
            }
        }
    }
    for (parcel, parts) in parcels.iter_mut().zip(parts) {
        if let Some(whole) = update::album(parts) {
            parcel.message = whole;
        }
    }
    parcels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: an update that cannot be read is known by its number, so that the next ones are reached.
    #[test]
    fn the_number_of_an_unreadable_update_is_found() {
        assert_eq!(first_id(br#"{"ok":true,"result":[{"update_id" : 77,"mess"#), Some(77));
        assert_eq!(first_id(br#"{"update_id":}"#), None);
        assert_eq!(first_id(b"\xff\"update_id\":5\xff"), Some(5));
        assert_eq!(first_id(b"nothing"), None);
    }
}
