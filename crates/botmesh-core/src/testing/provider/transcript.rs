use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::id::{ChatKey, MessageId};
use crate::message::{Message, Outgoing, OutgoingButton};
use crate::provider::SendOptions;
use crate::watched::{Watched, Watcher};

/// One thing that happened on the platform.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its place in the transcript of all chats, from 0.
    pub number: usize,
    /// Where it happened.
    pub chat: ChatKey,
    /// What happened.
    pub what: Happening,
}

/// What can happen on the platform.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Happening {
    /// The user said, pressed or sent something; whether the bot took it is not told here.
    Said(Message),
    /// The bot sent a message.
    Sent {
        /// The platform's id of it.
        id: MessageId,
        /// The message.
        message: Outgoing,
        /// What was sent along.
        options: SendOptions,
    },
    /// The bot replaced a message.
    Edited {
        /// The replaced message.
        id: MessageId,
        /// Its new content.
        message: Outgoing,
    },
    /// The bot deleted a message.
    Deleted {
        /// The deleted message.
        id: MessageId,
    },
    /// The bot reacted to a message.
    Reacted {
        /// The message.
        id: MessageId,
        /// The emoji; none when the reaction was taken back.
        emoji: Option<String>,
    },
    /// The bot showed that it is writing.
    Typing,
}

impl Happening {
    /// The message that the bot sent, if it is that.
    #[must_use]
    pub const fn sent(&self) -> Option<&Outgoing> {
        match self {
            Self::Sent { message, .. } => Some(message),
            _ => None,
        }
    }

    const fn is_of_bot(&self) -> bool {
        !matches!(self, Self::Said(_))
    }
}

/// One line as a chat would show it.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Happening::Said(message) => match message.body() {
                Some(body) => write!(f, "{}> {body}", self.chat.chat()),
                None => write!(f, "{}> {:?}", self.chat.chat(), message.content),
            },
            Happening::Sent { message, .. } => write!(f, "bot> {}", in_one_line(message)),
            Happening::Edited { id, message } => {
                write!(f, "bot edits {id}> {}", in_one_line(message))
            }
            Happening::Deleted { id } => write!(f, "bot deletes {id}"),
            Happening::Reacted { id, emoji: Some(emoji) } => {
                write!(f, "bot reacts to {id}: {emoji}")
            }
            Happening::Reacted { id, emoji: None } => {
                write!(f, "bot takes its reaction to {id} back")
            }
            Happening::Typing => f.write_str("bot types"),
        }
    }
}

fn in_one_line(message: &Outgoing) -> String {
    let mut parts = Vec::new();
    if !message.text.is_empty() {
        parts.push(message.text.to_string());
    }
    parts
        .extend(message.attachments.iter().map(|one| format!("[{:?} {:?}]", one.kind, one.source)));
    parts.extend(message.location.iter().map(|at| format!("[{}, {}]", at.latitude, at.longitude)));
    parts.extend(message.buttons.iter().map(|button| format!("[{}]", button.label)));
    parts.join(" ")
}

/// All that happened, in order; grows only.
#[derive(Debug)]
pub(super) struct Transcript {
    entries: Mutex<Vec<Entry>>,
    length: Watched<usize>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { entries: Mutex::default(), length: Watched::new(0) }
    }
}

impl Transcript {
    pub(super) fn add(&self, chat: &ChatKey, what: Happening) {
        let mut entries = self.entries.lock();
        let number = entries.len();
        entries.push(Entry { number, chat: chat.clone(), what });
        self.length.replace(number + 1);
    }

    pub(super) fn length(&self) -> usize {
        self.entries.lock().len()
    }

    pub(super) fn entries(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries.lock().iter().filter(|entry| wanted(entry)).cloned().collect()
    }

    fn first(&self, from: usize, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let entries = self.entries.lock();
        entries.get(from..)?.iter().find(|entry| wanted(entry)).cloned()
    }

    /// The newest button of the chat that says `label` and is still shown, with its message; else
    /// the labels that are shown.
    pub(super) fn button(
        &self,
        chat: &ChatKey,
        label: &str,
    ) -> Result<(MessageId, OutgoingButton), Vec<String>> {
        let mut settled = Vec::new();
        let mut offered = Vec::new();
        for entry in self.entries.lock().iter().rev().filter(|entry| entry.chat == *chat) {
            let (id, buttons) = match &entry.what {
                Happening::Sent { id, message, .. } | Happening::Edited { id, message } => {
                    (id, &message.buttons[..])
                }
                Happening::Deleted { id } => (id, &[][..]),
                _ => continue,
            };
            if settled.contains(id) {
                continue;
            }
            settled.push(id.clone());
            if let Some(button) = buttons.iter().find(|button| button.label == label) {
                return Ok((id.clone(), button.clone()));
            }
            offered.extend(buttons.iter().map(|button| button.label.to_string()));
        }
        Err(offered)
    }
}

/// Hears what the bot does in one chat, each thing once and in order, however late it asks.
#[derive(Debug, Clone)]
pub struct Listener {
    transcript: Arc<Transcript>,
    chat: ChatKey,
    position: usize,
    length: Watcher<usize>,
}

impl Listener {
    pub(super) fn new(transcript: Arc<Transcript>, chat: ChatKey, position: usize) -> Self {
        let length = transcript.length.watch();
        Self { transcript, chat, position, length }
    }

    /// The next thing that the bot did in the chat, if it has done it already.
    pub fn try_next(&mut self) -> Option<Entry> {
        let chat = &self.chat;
        let of_bot = |entry: &Entry| entry.chat == *chat && entry.what.is_of_bot();
        let next = self.transcript.first(self.position, of_bot)?;
        self.position = next.number + 1;
        Some(next)
    }

    /// The next thing that the bot does in the chat. Waits for it without an end: bound it with
    /// `tokio::time::timeout`. Safe to cancel.
    pub async fn next(&mut self) -> Entry {
        loop {
            self.length.get();
            if let Some(entry) = self.try_next() {
                return entry;
            }
            self.length.changed().await;
        }
    }

    /// The next message that the bot sends to the chat; passes over everything else.
    pub async fn next_message(&mut self) -> Outgoing {
        loop {
            if let Happening::Sent { message, .. } = self.next().await.what {
                return message;
            }
        }
    }
}
