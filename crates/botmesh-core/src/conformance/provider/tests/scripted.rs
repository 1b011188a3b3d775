use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::flawed::{Flaw, Flawed};
use crate::conformance::{Failure, Played, ProviderFixture, Received, ReceivedMessage};
use crate::id::{ChatKey, MessageId};
use crate::message::{
    ButtonLayout, ButtonPress, Content, Location, Media, MediaKind, Message, Outgoing,
};
use crate::provider::{Capabilities, ChoiceLimits, Provider, ProviderError};
use crate::testing::TestProvider;
use crate::testing::provider::Happening;
use crate::time::Timestamp;

/// With buttons and lists as narrow as on the narrowest platforms.
pub(super) fn everything() -> Capabilities {
    Capabilities {
        buttons: Some(ChoiceLimits::new(3, 20)),
        list: Some(ChoiceLimits::new(10, 24)),
        idempotent_send: true,
        ..TestProvider::new().capabilities()
    }
}

/// The scriptable provider, with a platform that pushes one message after the other.
#[derive(Debug)]
pub(super) struct ScriptedFixture {
    platform: TestProvider,
    provider: Arc<dyn Provider>,
    flaw: Flaw,
    pushes: mpsc::UnboundedSender<Message>,
    last: Mutex<HashMap<ChatKey, Message>>,
    said: AtomicUsize,
    clock: Mutex<Timestamp>,
    acknowledged: Arc<AtomicUsize>,
}

impl ScriptedFixture {
    /// Pauses the clock.
    pub(super) fn new(able: Capabilities) -> Self {
        tokio::time::pause();
        Self::flawed(able, Flaw::None)
    }

    pub(super) fn flawed(able: Capabilities, flaw: Flaw) -> Self {
        let platform = TestProvider::new().with_capabilities(able);
        let provider: Arc<dyn Provider> = match flaw {
            Flaw::None => Arc::new(platform.clone()),
            flaw => Arc::new(Flawed::new(platform.clone(), flaw)),
        };
        let (pushes, mut pushed) = mpsc::unbounded_channel();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let (pusher, count) = (platform.clone(), Arc::clone(&acknowledged));
        tokio::spawn(async move {
            while let Some(message) = pushed.recv().await {
                if pusher.deliver(message).await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            platform,
            provider,
            flaw,
            pushes,
            last: Mutex::default(),
            said: AtomicUsize::new(0),
            clock: Mutex::default(),
            acknowledged,
        }
    }

    fn push(&self, chat: &ChatKey, content: Content) -> Played {
        let message = self.message(chat, content);
        self.last.lock().insert(chat.clone(), message.clone());
        self.pushes.send(message).unwrap();
        Played::Done
    }

    fn message(&self, chat: &ChatKey, content: Content) -> Message {
        let number = self.said.fetch_add(1, Ordering::Relaxed);
        let id = MessageId::new(format!("u{number}")).unwrap();
        Message::new(chat.clone(), content).with_id(id).with_sent_at(*self.clock.lock())
    }
}

#[async_trait]
impl ProviderFixture for ScriptedFixture {
    fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    fn chat(&self, number: usize) -> Option<ChatKey> {
        Some(self.platform.chat(["ana", "bo"][number]))
    }

    fn secrets(&self) -> Vec<String> {
        vec!["token-of-the-test".into()]
    }

    async fn user_says(&self, chat: &ChatKey, text: &str) -> Played {
        self.push(chat, Content::Text(text.into()))
    }

    async fn user_presses(&self, chat: &ChatKey, label: &str) -> Played {
        let mut shown = self.platform.transcript_of(chat);
        while let Some(entry) = shown.pop() {
            let Happening::Sent { id, message, .. } = entry.what else { continue };
            if let Some(button) = message.buttons.iter().find(|button| button.label == label) {
                let press = ButtonPress::new(button.payload.clone()).with_label(label);
                return self
                    .push(chat, Content::Button(ButtonPress { message: Some(id), ..press }));
            }
        }
        Played::Impossible
    }

    async fn user_sends_media(&self, chat: &ChatKey, kind: MediaKind, caption: &str) -> Played {
        self.push(chat, Content::Media(Media::new(kind, "file-1").with_caption(caption)))
    }

    async fn user_sends_location(&self, chat: &ChatKey, place: &Location) -> Played {
        self.push(chat, Content::Location(place.clone()))
    }

    async fn platform_swaps(&self, chat: &ChatKey, first: &str, second: &str) -> Played {
        let [first, second] =
            [first, second].map(|text| self.message(chat, Content::Text(text.into())));
        for message in [second, first] {
            self.pushes.send(message).unwrap();
        }
        Played::Done
    }

    async fn platform_clock_says(&self, moment: Timestamp) -> Played {
        *self.clock.lock() = moment;
        Played::Done
    }

    async fn platform_answers_late(&self, delay: Duration) -> Played {
        self.platform.delay_sends(delay);
        Played::Done
    }

    async fn platform_repeats(&self, chat: &ChatKey) -> Played {
        let last = self.last.lock().get(chat).cloned();
        self.pushes.send(last.unwrap()).unwrap();
        Played::Done
    }

    async fn platform_sends_garbage(&self) -> Played {
        // In memory there is nothing but messages; a flawed provider is told to take it badly.
        if self.flaw == Flaw::EndsAtGarbage {
            self.platform.close("garbage");
        }
        Played::Done
    }

    async fn platform_fails_next_send(&self, failure: Failure) -> Played {
        let provider = self.platform.id().clone();
        let reason = "the user left".to_owned();
        self.platform.fail_next_send(match failure {
            Failure::Broken => ProviderError::Unreachable { provider, source: "status 500".into() },
            Failure::Garbled | Failure::Endless => {
                ProviderError::Unreachable { provider, source: "no answer that ends".into() }
            }
            Failure::RateLimited(retry_after) => {
                ProviderError::RateLimited { provider, retry_after }
            }
            Failure::ChatGone => ProviderError::ChatGone { provider, reason },
            Failure::Unauthorized => ProviderError::Unauthorized { provider },
        });
        Played::Done
    }

    async fn platform_drops_connection(&self) -> Played {
        self.platform.interrupt();
        let platform = self.platform.clone();
        if self.flaw != Flaw::StaysAway {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                platform.restore();
            });
        }
        Played::Done
    }

    async fn acknowledged(&self) -> Option<usize> {
        Some(self.acknowledged.load(Ordering::Relaxed))
    }

    async fn received(&self, chat: &ChatKey) -> Vec<Received> {
        let all = self.platform.transcript_of(chat).into_iter();
        all.filter_map(|entry| match entry.what {
            Happening::Said(_) => None,
            Happening::Sent { message, .. } => Some(Received::Message(as_received(message))),
            Happening::Edited { message, .. } => Some(Received::Edited(message.text.into())),
            Happening::Deleted { .. } => Some(Received::Deleted),
            Happening::Reacted { emoji, .. } => Some(Received::Reacted(emoji)),
            Happening::Typing => Some(Received::Typing),
        })
        .collect()
    }
}

fn as_received(message: Outgoing) -> ReceivedMessage {
    let labels = message.buttons.iter().map(|button| button.label.to_string()).collect();
    let (buttons, rows) = match message.layout {
        ButtonLayout::Inline => (labels, Vec::new()),
        ButtonLayout::List => (Vec::new(), labels),
    };
    let formatted = message.spans.iter().map(|span| {
        let words = message.text.get(span.start..span.end).unwrap_or_default();
        (words.to_owned(), span.style.clone())
    });
    ReceivedMessage {
        formatted: formatted.collect(),
        text: message.text.into(),
        buttons,
        rows,
        attachments: message.attachments.iter().map(|one| one.kind).collect(),
        location: message.location,
    }
}
