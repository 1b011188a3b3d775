use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::transcript::{Happening, Transcript};
use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::{Message, Outgoing};
use crate::provider::{Capabilities, ChoiceLimits, ProviderError, Receipt, SendOptions, Session};
use crate::watched::Watched;

/// What all connections share.
pub(super) struct Platform {
    pub(super) id: ProviderId,
    pub(super) transcript: Arc<Transcript>,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    pub(super) capabilities: Capabilities,
    pub(super) last_id: u64,
    pub(super) last_of_user: HashMap<ChatKey, Message>,
    pub(super) receipts: HashMap<(ChatKey, String), Receipt>,
}

pub(super) struct Connection {
    pub(super) link: Watched<Link>,
    /// The number of the last run, and its session until it ends.
    pub(super) session: Watched<Option<(u64, Option<Session>)>>,
    pub(super) faults: Mutex<Faults>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Link {
    Up,
    Down,
    Ended,
    Closed(String),
}

#[derive(Default)]
pub(super) struct Faults {
    pub(super) next_sends: VecDeque<Fault>,
    pub(super) delay: Duration,
}

pub(super) enum Fault {
    Refuse(ProviderError),
    LoseReceipt,
}

impl Platform {
    pub(super) fn new(id: ProviderId) -> Self {
        let capabilities = Capabilities {
            formatting: true,
            buttons: Some(ChoiceLimits::NONE),
            media: true,
            location: true,
            edit: true,
            delete: true,
            react: true,
            typing: true,
            ..Capabilities::default()
        };
        let state = State {
            capabilities,
            last_id: 0,
            last_of_user: HashMap::new(),
            receipts: HashMap::new(),
        };
        Self { id, transcript: Arc::default(), state: Mutex::new(state) }
    }

    pub(super) fn next_id(&self) -> MessageId {
        self.state.lock().next_id()
    }

    /// Takes a message that was sent, unless its key was taken before.
    pub(super) fn take(&self, chat: &ChatKey, message: Outgoing, options: &SendOptions) -> Receipt {
        let key = options.idempotency_key.clone().map(|key| (chat.clone(), key));
        let mut state = self.state.lock();
        let key = key.filter(|_| state.capabilities.idempotent_send);
        if let Some(receipt) = key.as_ref().and_then(|key| state.receipts.get(key)) {
            return receipt.clone();
        }
        let id = state.next_id();
        let receipt = Receipt::of(id.clone());
        if let Some(key) = key {
            state.receipts.insert(key, receipt.clone());
        }
        let sent = Happening::Sent { id, message, options: options.clone() };
        self.transcript.add(chat, sent);
        receipt
    }
}

impl State {
    fn next_id(&mut self) -> MessageId {
        self.last_id += 1;
        let text = format!("m{}", self.last_id);
        MessageId::new(text).unwrap_or_else(|error| unreachable!("m and a number: {error}"))
    }
}

impl Connection {
    pub(super) fn new() -> Self {
        Self { link: Watched::new(Link::Up), session: Watched::new(None), faults: Mutex::default() }
    }
}
