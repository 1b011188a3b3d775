//! The updates that all contenders are given.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

/// Writes so many updates of so many chats, one a line, as Telegram writes them.
///
/// # Errors
/// When the file cannot be written.
pub fn write(file: &Path, updates: u64, chats: u64) -> Result<()> {
    let mut lines = String::new();
    for number in 0..updates {
        let id = 1_000_000_000 + number % chats;
        let update = json!({
            "update_id": 700_000_000 + number,
            "message": {
                "message_id": number + 1,
                "from": {
                    "id": id,
                    "is_bot": false,
                    "first_name": "Ana",
                    "last_name": "Ruiz",
                    "username": "ana_ruiz",
                    "language_code": "es",
                },
                "chat": {
                    "id": id,
                    "first_name": "Ana",
                    "last_name": "Ruiz",
                    "username": "ana_ruiz",
                    "type": "private",
                },
                "date": 1_767_225_600 + number / 30,
                "text": "hi",
            },
        });
        lines.push_str(&update.to_string());
        lines.push('\n');
    }
    Ok(std::fs::write(file, lines)?)
}

/// The lines of such a file.
pub(crate) fn read(file: &Path) -> Result<Vec<String>> {
    Ok(std::fs::read_to_string(file)?.lines().map(str::to_owned).collect())
}
