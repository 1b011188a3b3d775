use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::scene::Listener;
use super::timer::{TimerId, Timers, Wake, WakeReason};
use crate::conversation::{Conversation, Script};
use crate::error::BotError;
use crate::id::{ChatKey, ConversationName};
use crate::message::Message;
use crate::question::{Question, WaitToken};
use crate::text::Texts;

const SHARDS: usize = 64;

type Shard = HashMap<ChatKey, Box<Active>>;

/// A conversation that the bot can enter.
pub(crate) enum Definition {
    /// An asynchronous function.
    Function { name: ConversationName, start: StartFunction },
}

pub(crate) type StartFunction = Arc<dyn Fn() -> Script + Send + Sync>;

/// What a bot can converse about, and the conversations that wait in memory.
pub(crate) struct Conversations {
    definitions: Vec<Definition>,
    settings: ConversingSettings,
    shards: Box<[Mutex<Shard>]>,
    shard_of: RandomState,
}

/// What holds for all conversations of a bot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConversingSettings {
    /// How long a question without a timeout of its own waits.
    pub(crate) timeout: Option<Duration>,
    /// Whether the built-in cancel words end an asynchronous conversation.
    pub(crate) cancellable: bool,
}

/// What a chat's conversation did with a message.
#[allow(clippy::large_enum_variant, reason = "it is moved once; a box would be an allocation")]
pub(super) enum Claimed {
    /// It was for the conversation.
    Taken,
    /// It is for the routes.
    Free(Message),
}

/// A conversation that waits for its user, or for time to pass.
pub(super) struct Active {
    pub(super) number: usize,
    /// Tells this conversation from earlier ones of the chat.
    pub(super) run: u64,
    /// Counts the waits of the conversation.
    pub(super) wait: u32,
    pub(super) listener: Listener,
    pub(super) state: State,
    deadline: Option<TimerId>,
}

pub(super) enum State {
    Function(Script, Waiting),
}

/// What a script waits for.
pub(super) enum Waiting {
    Answer { question: Arc<Question>, token: WaitToken, failures: u32 },
    Rest,
}

impl Definition {
    pub(crate) fn function<F, R, T>(name: ConversationName, function: F) -> Self
    where
        F: Fn(Conversation) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        Self::Function { name, start: Arc::new(move || Script::new(&function)) }
    }

    pub(crate) const fn name(&self) -> &ConversationName {
        match self {
            Self::Function { name, .. } => name,
        }
    }
}

impl Conversations {
    pub(crate) fn new(definitions: Vec<Definition>, settings: ConversingSettings) -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { definitions, settings, shards, shard_of: RandomState::new() }
    }

    pub(super) fn any(&self) -> bool {
        !self.definitions.is_empty()
    }

    pub(super) fn any_persistent(&self) -> bool {
        false
    }

    pub(super) fn definition(&self, number: usize) -> &Definition {
        &self.definitions[number]
    }

    pub(super) fn name(&self, name: &str) -> Option<&ConversationName> {
        self.definitions.iter().map(Definition::name).find(|known| known.as_str() == name)
    }

    pub(super) fn number(&self, name: &ConversationName) -> Option<usize> {
        self.definitions.iter().position(|definition| definition.name() == name)
    }

    /// How long a question without a timeout of its own waits.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    pub(super) fn is_cancel_word(&self, message: &Message, texts: &Texts) -> bool {
        let Some(said) = message.body().filter(|_| self.settings.cancellable) else { return false };
        let language = message.language.as_ref().unwrap_or_else(|| texts.default_language());
        let said = said.trim().to_lowercase();
        texts.words("core.cancel.words", language).contains(&said)
    }

    pub(super) fn is_waiting(&self, chat: &ChatKey) -> bool {
        self.shard(chat).lock().contains_key(chat)
    }

    /// Takes the chat's conversation out of memory, for its turn.
    pub(super) fn take(&self, chat: &ChatKey) -> Option<Box<Active>> {
        self.shard(chat).lock().remove(chat)
    }

    /// Puts the chat's conversation back, to wait.
    pub(super) fn park(&self, chat: ChatKey, active: Box<Active>) {
        self.shard(&chat).lock().insert(chat, active);
    }

    /// How many conversations wait in memory.
    pub(super) fn waiting(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn shard(&self, chat: &ChatKey) -> &Mutex<Shard> {
        #[allow(clippy::cast_possible_truncation, reason = "only the low bits are used")]
        let index = self.shard_of.hash_one(chat) as usize % SHARDS;
        &self.shards[index]
    }
}

impl Active {
    pub(super) const fn new(number: usize, run: u64, listener: Listener, state: State) -> Self {
        Self { number, run, wait: 0, listener, state, deadline: None }
    }

    pub(super) fn arm_deadline(&mut self, timers: &Timers, chat: &ChatKey, after: Duration) {
        self.disarm(timers);
        let reason = WakeReason::Deadline { run: self.run, wait: self.wait };
        self.deadline = Some(timers.arm(after, Wake { chat: chat.clone(), reason }));
    }

    pub(super) fn disarm(&mut self, timers: &Timers) {
        if let Some(id) = self.deadline.take() {
            timers.disarm(id);
        }
    }

    /// Whether `reason` means the present wait.
    pub(super) fn is_meant(&self, reason: WakeReason) -> bool {
        matches!(
            reason,
            WakeReason::Deadline { run, wait } | WakeReason::Idle { run, wait }
                if run == self.run && wait == self.wait
        )
    }
}
