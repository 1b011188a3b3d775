use botmesh_core::message::OutgoingButton;
use serde_json::{Value, json};

/// The longest payload of a button, in bytes:
/// <https://core.telegram.org/bots/api#inlinekeyboardbutton>.
const MAX_PAYLOAD: usize = 64;

/// How many letters of labels a row has room for on a small screen.
const ROW: usize = 30;

/// The buttons as Telegram wants them, short ones beside each other.
///
/// # Errors
/// Why Telegram would refuse them, in words.
pub(super) fn of(buttons: &[OutgoingButton]) -> Result<Option<Value>, String> {
    if buttons.is_empty() {
        return Ok(None);
    }
    let mut rows: Vec<Vec<Value>> = Vec::new();
    let mut room = 0;
    for OutgoingButton { label, payload, .. } in buttons {
        if payload.is_empty() || payload.len() > MAX_PAYLOAD {
            return Err(format!(
                "the payload of the button {label:?} has {} bytes: Telegram takes 1 to {MAX_PAYLOAD}",
                payload.len()
            ));
        }
        let button = json!({ "text": label, "callback_data": payload });
        // Each button needs some space around its label.
        let width = label.chars().count() + 4;
        match rows.last_mut() {
            Some(row) if width <= room && row.len() < 8 => {
                room -= width;
                row.push(button);
            }
            _ => {
                room = ROW.saturating_sub(width);
                rows.push(vec![button]);
            }
        }
    }
    Ok(Some(json!({ "inline_keyboard": rows })))
}
