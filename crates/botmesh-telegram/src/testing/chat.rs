use std::time::Duration;

use botmesh_core::message::{Location, MediaKind};
use serde_json::{Value, json};

use super::{Call, FakeTelegram};

/// How long an answer of the bot is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A chat in which one user writes to the bot.
#[derive(Debug, Clone)]
pub struct FakeChat {
    platform: FakeTelegram,
    id: i64,
    kind: &'static str,
    user: i64,
    topic: Option<i64>,
}

impl FakeChat {
    pub(super) fn private(platform: FakeTelegram, user: i64) -> Self {
        platform.state.know(user);
        Self { platform, id: user, kind: "private", user, topic: None }
    }

    pub(super) fn group(platform: FakeTelegram, group: i64, user: i64) -> Self {
        platform.state.know(group);
        Self { platform, id: group, kind: "supergroup", user, topic: None }
    }

    /// The same user in this topic.
    #[must_use]
    pub fn topic(mut self, topic: i64) -> Self {
        self.topic = Some(topic);
        self
    }

    /// The user says something.
    pub fn says(&self, text: &str) {
        self.sends(json!({ "text": text }));
    }

    /// The user says two things, and the second one is delivered first.
    pub fn says_swapped(&self, first: &str, second: &str) {
        let [first, second] =
            [first, second].map(|text| json!({ "message": self.message(json!({ "text": text })) }));
        self.platform.state.queue_swapped(first, second);
    }

    /// The user sends a message with these fields.
    pub fn sends(&self, content: Value) -> i64 {
        let message = self.message(content);
        let id = message["message_id"].as_i64().unwrap_or_default();
        self.platform.delivers(json!({ "message": message }));
        id
    }

    /// The user sends a picture, a recording or a file.
    pub fn sends_media(&self, kind: MediaKind, caption: &str) {
        self.sends(media(kind, caption));
    }

    /// The user sends pictures as an album.
    pub fn sends_album(&self, captions: &[&str]) {
        let album = self.platform.state.next_number().to_string();
        for caption in captions {
            let mut photo = media(MediaKind::Image, caption);
            photo["media_group_id"] = album.clone().into();
            self.sends(photo);
        }
    }

    /// The user sends a place.
    pub fn sends_location(&self, place: &Location) {
        let at = json!({ "latitude": place.latitude, "longitude": place.longitude });
        self.sends(json!({ "location": at }));
    }

    /// The user presses the button that says this, of the newest message that has it. Says whether
    /// there is one.
    #[must_use]
    pub fn presses(&self, label: &str) -> bool {
        let Some((message, data)) = self.platform.state.button(self.id, label) else {
            return false;
        };
        let query = json!({
            "id": self.platform.state.next_number().to_string(),
            "from": self.user(),
            "chat_instance": "1",
            "message": message,
            "data": data,
        });
        self.platform.delivers(json!({ "callback_query": query }));
        true
    }

    /// All calls about this chat, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.platform.calls().into_iter().filter(|call| call.chat == self.id).collect()
    }

    /// The messages of the bot in this chat, in order.
    #[must_use]
    pub fn heard(&self) -> Vec<Call> {
        self.calls().into_iter().filter(Call::is_message).collect()
    }

    /// Waits for the message number `index` of the bot in this chat.
    ///
    /// # Panics
    /// When it does not come within 20 s.
    pub async fn hears(&self, index: usize) -> Call {
        let mut changes = self.platform.state.changes();
        let heard = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(call) = self.heard().into_iter().nth(index) {
                    return call;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        });
        match heard.await {
            Ok(call) => call,
            Err(_) => panic!("message {index} did not come; the chat is {:?}", self.heard()),
        }
    }

    fn user(&self) -> Value {
        json!({
            "id": self.user,
            "is_bot": false,
            "first_name": format!("User {}", self.user),
            "language_code": "en",
        })
    }

    fn message(&self, content: Value) -> Value {
        let mut message = json!({
            "message_id": self.platform.state.next_message(self.id),
            "from": self.user(),
            "chat": { "id": self.id, "type": self.kind },
            "date": self.platform.state.date(),
        });
        if let Some(topic) = self.topic {
            message["message_thread_id"] = topic.into();
            message["is_topic_message"] = true.into();
        }
        for (field, value) in content.as_object().into_iter().flatten() {
            message[field] = value.clone();
        }
        message
    }
}

fn media(kind: MediaKind, caption: &str) -> Value {
    let file = json!({ "file_id": "file-1", "file_unique_id": "u1", "file_size": 68 });
    let mut message = match kind {
        MediaKind::Image => {
            let mut small = file.clone();
            small["file_id"] = "small".into();
            (small["width"], small["height"]) = (9.into(), 9.into());
            let mut large = file;
            (large["width"], large["height"]) = (90.into(), 90.into());
            json!({ "photo": [small, large] })
        }
        MediaKind::Video => json!({ "video": file }),
        MediaKind::Audio => json!({ "audio": file }),
        MediaKind::Voice => json!({ "voice": file }),
        MediaKind::Sticker => json!({ "sticker": file }),
        _ => json!({ "document": file }),
    };
    if !caption.is_empty() {
        message["caption"] = caption.into();
    }
    message
}
