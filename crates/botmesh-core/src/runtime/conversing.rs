use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::hashed::{ChatHasher, HashedChat, HashedMap, SHARDS};
use super::recent::Recent;
use super::scene::Listener;
use super::timer::{TimerId, Timers, Wake, WakeReason};
use super::writer::Stored;
use crate::conversation::{Conversation, Script};
use crate::error::BotError;
use crate::flow::{FlowDefinition, Input, Persistence, Run};
use crate::id::{ChatKey, ConversationName, Fence, Revision};
use crate::message::Message;
use crate::question::{Question, WaitToken};
use crate::text::{Language, Texts};

/// How many chats are remembered to have no checkpoint in the store; a few bytes each.
const KNOWN_ABSENT: usize = 1_000_000;

struct Shard {
    waiting: HashedMap<HashedChat, Box<Active>>,
    absent: Recent,
}

/// A conversation that the bot can enter.
pub(crate) enum Definition {
    /// An asynchronous function.
    Function { name: ConversationName, start: StartFunction },
    /// A flow.
    Flow { name: ConversationName, flow: Arc<dyn FlowDefinition> },
}

pub(crate) type StartFunction = Arc<dyn Fn() -> Script + Send + Sync>;

/// What a bot can converse about, and the conversations that wait in memory.
pub(crate) struct Conversations {
    definitions: Vec<Definition>,
    persistent: bool,
    settings: ConversingSettings,
    shards: Box<[Mutex<Shard>]>,
    hasher: ChatHasher,
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
pub(super) enum Claimed {
    /// It was for the conversation.
    Taken,
    /// It is for the routes.
    Free(Box<Message>),
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
    /// The question that it waits on, where the platform could not be reached to ask it.
    pub(super) unasked: Option<(Arc<Question>, WaitToken)>,
    /// The checkpoint that the store has of it.
    pub(super) stored: Option<Stored>,
    /// The fence of the last turn that this process completed on the chat.
    pub(super) fence: Fence,
    deadline: Option<TimerId>,
    idle: Option<TimerId>,
}

pub(super) enum State {
    Function(Script, Waiting),
    /// The run, and the script of its step while one is under way.
    Flow(Box<(Run, Option<Script>)>),
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

    fn is_persistent(&self) -> bool {
        match self {
            Self::Function { .. } => false,
            Self::Flow { flow, .. } => flow.persistence() == Persistence::Persistent,
        }
    }

    pub(crate) const fn name(&self) -> &ConversationName {
        match self {
            Self::Function { name, .. } | Self::Flow { name, .. } => name,
        }
    }
}

impl Conversations {
    pub(crate) fn new(definitions: Vec<Definition>, settings: ConversingSettings) -> Self {
        let shard = || {
            let absent = Recent::new(KNOWN_ABSENT / SHARDS);
            Mutex::new(Shard { waiting: HashedMap::default(), absent })
        };
        let persistent = definitions.iter().any(Definition::is_persistent);
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        Self { definitions, persistent, settings, shards, hasher: ChatHasher::default() }
    }

    pub(super) fn any(&self) -> bool {
        !self.definitions.is_empty()
    }

    /// Whether a flow is kept in the store.
    pub(super) const fn any_persistent(&self) -> bool {
        self.persistent
    }

    /// Whether the store is known to have no checkpoint of the chat, under the turn with this
    /// fence. A later turn knows it only if it was [told](Self::keep_absent): somebody may have had
    /// the chat in between.
    pub(super) fn is_known_absent(&self, chat: &ChatKey, under: Fence) -> bool {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().absent.contains(self.hasher.chat_under(&chat, under))
    }

    pub(super) fn note_absent(&self, chat: &ChatKey, under: Fence) {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().absent.insert(self.hasher.chat_under(&chat, under));
    }

    pub(super) fn note_present(&self, chat: &ChatKey, under: Fence) {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().absent.remove(self.hasher.chat_under(&chat, under));
    }

    /// What was known under one turn is known under the next one, too.
    pub(super) fn keep_absent(&self, chat: &ChatKey, from: Fence, to: Fence) {
        let chat = self.hasher.chat(chat);
        let (from, to) = (self.hasher.chat_under(&chat, from), self.hasher.chat_under(&chat, to));
        let absent = &mut self.shard(&chat).lock().absent;
        if absent.contains(from) {
            absent.remove(from);
            absent.insert(to);
        }
    }

    /// The waiting conversation of the chat goes on in this language.
    pub(super) fn set_language(&self, chat: &ChatKey, language: &Language) {
        let chat = self.hasher.chat(chat);
        if let Some(active) = self.shard(&chat).lock().waiting.get_mut(&chat) {
            active.listener.set_language(language);
        }
    }

    pub(super) fn definition(&self, number: usize) -> &Definition {
        &self.definitions[number]
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.definitions.iter().position(|definition| definition.name().as_str() == name)
    }

    /// How long a question without a timeout of its own waits.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    pub(super) fn is_cancel_word(
        &self,
        message: &Message,
        language: &Language,
        texts: &Texts,
    ) -> bool {
        let Some(said) = message.body().filter(|_| self.settings.cancellable) else { return false };
        let said = said.trim().to_lowercase();
        texts.words("core.cancel.words", language).contains(&said)
    }

    /// What `look` sees of the chat's waiting conversation, if it has one.
    pub(super) fn peek<T>(&self, chat: &ChatKey, look: impl FnOnce(&Active) -> T) -> Option<T> {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().waiting.get(&chat).map(|active| look(active))
    }

    /// Takes the chat's conversation out of memory, for its turn.
    pub(super) fn take(&self, chat: &ChatKey) -> Option<Box<Active>> {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().waiting.remove(&chat)
    }

    /// Like [`take`](Self::take), if `unwanted` says so.
    pub(super) fn take_if(
        &self,
        chat: &ChatKey,
        unwanted: impl FnOnce(&Active) -> bool,
    ) -> Option<Box<Active>> {
        let chat = self.hasher.chat(chat);
        let waiting = &mut self.shard(&chat).lock().waiting;
        if unwanted(waiting.get(&chat)?) { waiting.remove(&chat) } else { None }
    }

    /// Notes that the turn with this fence has been completed.
    pub(super) fn touch(&self, chat: &ChatKey, fence: Fence) {
        let chat = self.hasher.chat(chat);
        if let Some(active) = self.shard(&chat).lock().waiting.get_mut(&chat) {
            active.fence = fence;
        }
    }

    /// Notes the checkpoint that was stored at the end of a record.
    pub(super) fn set_stored(&self, chat: &ChatKey, revision: Revision) {
        let chat = self.hasher.chat(chat);
        if let Some(active) = self.shard(&chat).lock().waiting.get_mut(&chat) {
            active.unstage(Some(Stored::At(revision)));
        }
    }

    /// Puts the chat's conversation back, to wait.
    pub(super) fn park(&self, chat: &ChatKey, active: Box<Active>) {
        let chat = self.hasher.chat(chat);
        self.shard(&chat).lock().waiting.insert(chat, active);
    }

    fn shard(&self, chat: &HashedChat) -> &Mutex<Shard> {
        &self.shards[chat.shard()]
    }
}

impl Active {
    pub(super) const fn new(number: usize, run: u64, listener: Listener, state: State) -> Self {
        Self {
            number,
            run,
            wait: 0,
            listener,
            state,
            unasked: None,
            stored: None,
            fence: Fence::new(0),
            deadline: None,
            idle: None,
        }
    }

    /// Begins another wait: the timers of the one before are disarmed.
    pub(super) fn begin_wait(
        &mut self,
        timers: &Timers,
        chat: &ChatKey,
        deadline: Option<Duration>,
        idle: Option<Duration>,
    ) {
        self.disarm(timers);
        self.wait += 1;
        let (run, wait) = (self.run, self.wait);
        let arm = |after, reason| timers.arm(after, Wake { chat: chat.clone(), reason });
        self.deadline = deadline.map(|after| arm(after, WakeReason::Deadline { run, wait }));
        self.idle = idle.map(|after| arm(after, WakeReason::Idle { run, wait }));
    }

    /// What was staged of it has become `stored`.
    pub(super) fn unstage(&mut self, stored: Option<Stored>) {
        if self.stored == Some(Stored::Staged) {
            self.stored = stored;
        }
    }

    pub(super) fn disarm(&mut self, timers: &Timers) {
        for id in [self.deadline.take(), self.idle.take()].into_iter().flatten() {
            timers.disarm(id);
        }
    }

    /// Whether the present wait ends by `moment` at the latest.
    pub(super) fn is_over_by(&self, moment: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline.is_over_by(moment))
    }

    /// What its moment is to it, or that its user is silent.
    pub(super) fn wake_input(&self, is_idle: bool) -> Input {
        match &self.state {
            State::Flow(flow) if flow.0.is_paused() => Input::Woken,
            _ if is_idle => Input::Idle,
            _ => Input::TimedOut,
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
