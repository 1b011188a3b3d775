use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::conformance::{Played, ProviderFixture, Received, ReceivedMessage};
use crate::id::ChatKey;
use crate::message::{Location, MediaKind};
use crate::provider::Provider;
use crate::terminal::Terminal;

/// The terminal over pipes in memory, as a person would see it.
#[derive(Debug)]
struct TerminalFixture {
    terminal: Arc<Terminal>,
    keyboard: tokio::sync::Mutex<DuplexStream>,
    screen: Arc<Mutex<String>>,
}

impl TerminalFixture {
    fn new() -> Self {
        tokio::time::pause();
        let (keyboard, reader) = tokio::io::duplex(4 << 20);
        let (writer, mut shown) = tokio::io::duplex(1 << 16);
        let screen = Arc::new(Mutex::new(String::new()));
        let watched = Arc::clone(&screen);
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            while shown.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
                let valid = std::str::from_utf8(&bytes).map_or_else(|e| e.valid_up_to(), str::len);
                let text: Vec<u8> = bytes.drain(..valid).collect();
                watched.lock().push_str(std::str::from_utf8(&text).unwrap());
            }
        });
        let terminal = Terminal::over(reader, writer).live(true).reports_to(std::io::sink());
        Self { terminal: Arc::new(terminal), keyboard: keyboard.into(), screen }
    }

    async fn types(&self, bytes: &[u8]) {
        self.keyboard.lock().await.write_all(bytes).await.unwrap();
    }
}

#[async_trait]
impl ProviderFixture for TerminalFixture {
    fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.terminal) as Arc<dyn Provider>
    }

    fn chat(&self, number: usize) -> Option<ChatKey> {
        (number == 0).then(|| self.terminal.chat_key().clone())
    }

    async fn user_says(&self, _chat: &ChatKey, text: &str) -> Played {
        // A line is a message, and white space is none.
        if text.contains('\n') || text.trim_ascii().is_empty() {
            return Played::Impossible;
        }
        self.types(format!("{text}\n").as_bytes()).await;
        Played::Done
    }

    async fn user_presses(&self, chat: &ChatKey, label: &str) -> Played {
        // The second button by its label, the first one by its number.
        let typed = if label == "Pequeño" { "1" } else { label };
        self.user_says(chat, typed).await
    }

    async fn platform_sends_garbage(&self) -> Played {
        self.types(b"\xff\xfe\n\xc3\x28\n\0\xf0\n\n\r\n").await;
        self.types(&vec![b'x'; (1 << 20) + 2]).await;
        self.types(b"\n").await;
        Played::Done
    }

    async fn received(&self, _chat: &ChatKey) -> Vec<Received> {
        let screen = self.screen.lock();
        let mut received = Vec::new();
        for line in screen.split_terminator('\n') {
            read_line(line, &mut received);
        }
        received
    }
}

/// Reads a line of the screen back.
fn read_line(mut line: &str, received: &mut Vec<Received>) {
    while let Some(rest) = line.strip_prefix("…\r") {
        received.push(Received::Typing);
        line = rest;
    }
    let text = |text: &str| {
        Received::Message(ReceivedMessage { text: text.to_owned(), ..ReceivedMessage::default() })
    };
    if let Some(said) = line.strip_prefix("bot> ") {
        received.push(if let Some(new) = said.strip_prefix("[edited] ") {
            Received::Edited(new.to_owned())
        } else if said == "[deleted a message]" {
            Received::Deleted
        } else if said == "[took a reaction back]" {
            Received::Reacted(None)
        } else if let Some(emoji) = said.strip_prefix("[reaction] ") {
            Received::Reacted(Some(emoji.to_owned()))
        } else if let Some((caption, _)) =
            said.strip_prefix("[image] ").and_then(|rest| rest.split_once(" <"))
        {
            Received::Message(ReceivedMessage {
                text: caption.to_owned(),
                attachments: vec![MediaKind::Image],
                ..ReceivedMessage::default()
            })
        } else if let Some(place) = said.strip_prefix("[location] ") {
            let (name, degrees) = place.split_once(" <").unwrap();
            let (latitude, longitude) = degrees.trim_end_matches('>').split_once(", ").unwrap();
            let location = Location {
                latitude: latitude.parse().unwrap(),
                longitude: longitude.parse().unwrap(),
                name: Some(name.to_owned()),
            };
            let location = Some(location);
            Received::Message(ReceivedMessage { location, ..ReceivedMessage::default() })
        } else {
            text(said)
        });
    } else if let Some(Received::Message(message)) = received.last_mut() {
        if let Some(more) = line.strip_prefix("     ") {
            message.text.push('\n');
            message.text.push_str(more);
        } else if let Some((_, label)) = line.split_once("] ") {
            message.buttons.push(label.to_owned());
        }
    }
}

crate::provider_conformance!(TerminalFixture::new());
