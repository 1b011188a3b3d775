//! What the suite of providers needs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::ChatKey;
use botmesh_core::conformance::provider::PICTURE;
use botmesh_core::conformance::{Failure, Played, ProviderFixture, Received, ReceivedMessage};
use botmesh_core::message::{Location, MediaKind};
use botmesh_core::provider::Provider;
use botmesh_core::text::Style;
use botmesh_core::time::Timestamp;
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::{Call, FakeChat, FakeTelegram, Fault};
use botmesh_webhook::{Limits, Server, ServerHandle, WebhookRouter};
use serde_json::json;

#[derive(Debug)]
pub(crate) struct TelegramFixture {
    platform: FakeTelegram,
    provider: Arc<Telegram>,
    _server: Option<ServerHandle>,
}

impl TelegramFixture {
    pub(crate) async fn polling() -> Self {
        let platform = platform().await;
        let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
        Self { platform, provider: Arc::new(telegram.build().unwrap()), _server: None }
    }

    pub(crate) async fn webhook() -> Self {
        let platform = platform().await;
        // The address is needed before there is a server: a port that is free is taken twice.
        let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = probe.local_addr().unwrap();
        drop(probe);
        let telegram = Telegram::webhook(FakeTelegram::TOKEN, format!("http://{address}"));
        let provider = Arc::new(telegram.api(platform.address()).build().unwrap());
        let router = WebhookRouter::of(vec![Arc::clone(&provider) as Arc<dyn Provider>]);
        let limits = Limits::builder().accept_time(Duration::from_secs(3)).build();
        let server = Server::new(router.limits(limits.unwrap())).unwrap();
        let server = server.start(address).await.unwrap();
        Self { platform, provider, _server: Some(server) }
    }

    fn chat_of(&self, chat: &ChatKey) -> FakeChat {
        self.platform.private(chat.chat().parse().unwrap())
    }
}

async fn platform() -> FakeTelegram {
    let platform = FakeTelegram::start().await.unwrap();
    platform.serves_file(PICTURE);
    platform
}

#[async_trait]
impl ProviderFixture for TelegramFixture {
    fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider) as Arc<dyn Provider>
    }

    fn chat(&self, number: usize) -> Option<ChatKey> {
        let user = 1000 + i64::try_from(number).unwrap();
        self.platform.private(user);
        ChatKey::new(self.provider.id(), &user.to_string()).ok()
    }

    fn secrets(&self) -> Vec<String> {
        vec![FakeTelegram::TOKEN.split(':').nth(1).unwrap().to_owned()]
    }

    async fn user_says(&self, chat: &ChatKey, text: &str) -> Played {
        // Telegram's apps send nothing that is empty.
        if text.trim().is_empty() {
            return Played::Impossible;
        }
        self.chat_of(chat).says(text);
        Played::Done
    }

    async fn user_presses(&self, chat: &ChatKey, label: &str) -> Played {
        if self.chat_of(chat).presses(label) { Played::Done } else { Played::Impossible }
    }

    async fn user_sends_media(&self, chat: &ChatKey, kind: MediaKind, caption: &str) -> Played {
        self.chat_of(chat).sends_media(kind, caption);
        Played::Done
    }

    async fn user_sends_location(&self, chat: &ChatKey, place: &Location) -> Played {
        self.chat_of(chat).sends_location(place);
        Played::Done
    }

    async fn platform_swaps(&self, chat: &ChatKey, first: &str, second: &str) -> Played {
        self.chat_of(chat).says_swapped(first, second);
        Played::Done
    }

    async fn platform_clock_says(&self, moment: Timestamp) -> Played {
        self.platform.dates(moment.as_millis() / 1000);
        Played::Done
    }

    async fn platform_answers_late(&self, delay: Duration) -> Played {
        self.platform.fails("*", Fault::Slow(delay));
        Played::Done
    }

    async fn platform_repeats(&self, _chat: &ChatKey) -> Played {
        self.platform.repeats();
        Played::Done
    }

    async fn platform_sends_garbage(&self) -> Played {
        if self.platform.webhook().is_some() {
            // More than anybody should read.
            let endless = "[".repeat(5 << 20);
            self.platform.delivers(json!({ "raw": endless }));
            for raw in ["", "{", "[]", "null", "\"\"", "{\"update_id\":\"x\"}", "\u{fffd}\0"] {
                self.platform.delivers(json!({ "raw": raw }));
            }
        } else {
            // Each is followed by a longer wait, so only a few fit into a case.
            for raw in [&b""[..], b"{\"ok\":true,\"result\":7}"] {
                self.platform.fails("getUpdates", Fault::Raw(200, raw.to_vec()));
            }
            self.platform.fails("getUpdates", Fault::bad_gateway());
            self.platform.cuts();
        }
        Played::Done
    }

    async fn platform_fails_next_send(&self, failure: Failure) -> Played {
        let fault = match failure {
            Failure::Broken => Fault::Error(500, "Internal Server Error".to_owned(), None),
            Failure::RateLimited(wait) => Fault::too_many(wait.as_secs()),
            Failure::ChatGone => Fault::blocked(),
            Failure::Garbled => {
                Fault::Raw(200, b"{\"ok\":true,\"result\":{\"message_id\":".to_vec())
            }
            Failure::Endless => Fault::Raw(200, vec![b' '; 8 << 20]),
            Failure::Unauthorized => Fault::Error(401, "Unauthorized".to_owned(), None),
            _ => return Played::Impossible,
        };
        self.platform.fails("*", fault);
        Played::Done
    }

    async fn platform_drops_connection(&self) -> Played {
        self.platform.cuts();
        Played::Done
    }

    async fn acknowledged(&self) -> Option<usize> {
        Some(self.platform.acknowledged())
    }

    async fn received(&self, chat: &ChatKey) -> Vec<Received> {
        self.chat_of(chat).calls().iter().filter_map(received).collect()
    }
}

fn received(call: &Call) -> Option<Received> {
    match call.method.as_str() {
        "editMessageText" | "editMessageCaption" => Some(Received::Edited(call.text())),
        "deleteMessage" => Some(Received::Deleted),
        "sendChatAction" => Some(Received::Typing),
        "setMessageReaction" => {
            let emoji = call.json("reaction")[0]["emoji"].as_str().map(str::to_owned);
            Some(Received::Reacted(emoji))
        }
        _ if call.is_message() => {
            let at = |field: &str| call.fields[field].as_f64();
            let location = at("latitude").zip(at("longitude")).map(|(latitude, longitude)| {
                let name = call.fields["title"].as_str().map(str::to_owned);
                Location { latitude, longitude, name }
            });
            Some(Received::Message(ReceivedMessage {
                text: call.text(),
                formatted: formatted(call),
                rows: Vec::new(),
                buttons: call.buttons(),
                attachments: call.attachments(),
                location,
            }))
        }
        _ => None,
    }
}

/// What stands out in the words of a call, read back from the units that Telegram counts in.
fn formatted(call: &Call) -> Vec<(String, Style)> {
    let units: Vec<u16> = call.text().encode_utf16().collect();
    let entities = call.json("entities");
    let entities = entities.as_array().into_iter().flatten().filter_map(|entity| {
        let at = |field: &str| entity[field].as_u64().and_then(|it| usize::try_from(it).ok());
        let words = units.get(at("offset")?..at("offset")? + at("length")?)?;
        let style = match entity["type"].as_str()? {
            "bold" => Style::Bold,
            "italic" => Style::Italic,
            "code" => Style::Code,
            "text_link" => Style::Link { address: entity["url"].as_str()?.to_owned().into() },
            _ => return None,
        };
        Some((String::from_utf16(words).ok()?, style))
    });
    entities.collect()
}
