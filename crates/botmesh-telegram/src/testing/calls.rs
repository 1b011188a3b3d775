use botmesh_core::message::MediaKind;
use serde_json::Value;

/// A call that the platform has taken.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The method, such as `sendMessage`.
    pub method: String,
    /// The chat that it was about; 0 where it was about none.
    pub chat: i64,
    /// The fields, as text where they came in a form.
    pub fields: Value,
    /// The lengths of the files that came along.
    pub files: Vec<usize>,
    /// The messages that it made.
    pub made: Vec<i64>,
}

impl Call {
    /// The words: a text, or the first caption.
    #[must_use]
    pub fn text(&self) -> String {
        let media = self.json("media");
        let text = self.fields["text"].as_str().or_else(|| self.fields["caption"].as_str());
        text.or_else(|| media[0]["caption"].as_str()).unwrap_or_default().to_owned()
    }

    /// The labels of the buttons, in order.
    #[must_use]
    pub fn buttons(&self) -> Vec<String> {
        let rows = self.json("reply_markup")["inline_keyboard"].as_array().cloned();
        let buttons =
            rows.into_iter().flatten().filter_map(|row| row.as_array().cloned()).flatten();
        buttons.filter_map(|button| button["text"].as_str().map(str::to_owned)).collect()
    }

    /// The kinds of what is attached, in order.
    #[must_use]
    pub fn attachments(&self) -> Vec<MediaKind> {
        let kind = |word: &str| match word {
            "photo" | "sendPhoto" => Some(MediaKind::Image),
            "video" | "sendVideo" => Some(MediaKind::Video),
            "audio" | "sendAudio" => Some(MediaKind::Audio),
            "document" | "sendDocument" => Some(MediaKind::Document),
            "sendVoice" => Some(MediaKind::Voice),
            "sendSticker" => Some(MediaKind::Sticker),
            _ => None,
        };
        match self.json("media").as_array() {
            Some(media) => media.iter().filter_map(|one| kind(one["type"].as_str()?)).collect(),
            None => kind(&self.method).into_iter().collect(),
        }
    }

    /// Whether it made a message.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.method.starts_with("send") && self.method != "sendChatAction"
    }

    /// A field that is an object or a list; in a form they are written as text.
    #[must_use]
    pub fn json(&self, field: &str) -> Value {
        match &self.fields[field] {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        }
    }

    /// A field that is a whole number.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<i64> {
        match &self.fields[field] {
            Value::String(text) => text.parse().ok(),
            other => other.as_i64(),
        }
    }
}
