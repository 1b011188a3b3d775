//! The notes of all processes of a run, put together by chat.

use std::collections::BTreeMap;

use super::notes::{Decision, Entry, Event, Life, MessageNumber};
use crate::history::Nanos;

/// All that is known of a run.
#[derive(Debug, Default)]
pub struct Story {
    /// The processes.
    pub lives: BTreeMap<Life, LifeStory>,
    /// The chats, by their keys.
    pub chats: BTreeMap<String, ChatStory>,
    /// What befell the processes and the server.
    pub faults: Vec<Fault>,
    /// When the exclusive connection began, ended and who had it.
    pub connections: Vec<Connection>,
    /// The latest moment.
    pub end: Nanos,
}

/// One process.
#[derive(Debug, Default)]
pub struct LifeStory {
    /// When it ran; none for one that did not come so far.
    pub started: Option<Nanos>,
    /// Its version of the bot.
    pub version: u32,
    /// What it does about conversations that cannot go on.
    pub decision: Option<Decision>,
    /// When it was killed.
    pub killed: Option<Nanos>,
    /// When it had stopped in order, and how many messages it left.
    pub stopped: Option<(Nanos, usize)>,
    /// Whether it did not stop when it was told to.
    pub never_stopped: bool,
    /// When it did not run.
    pub stalls: Vec<(Nanos, Nanos)>,
}

/// One chat.
#[derive(Debug, Default)]
pub struct ChatStory {
    /// Its turns, by their fences.
    pub turns: BTreeMap<u64, Turn>,
    /// What was said, in its order.
    pub messages: BTreeMap<MessageNumber, Message>,
    /// What the bot said, in the order in which it arrived.
    pub replies: Vec<Reply>,
    /// When the user had waited too long, and since when.
    pub silences: Vec<(Nanos, Nanos)>,
    /// Whether the user got no answer at the end.
    pub dead: bool,
    /// Conversations that were handed over: when, by whom, which and how.
    pub handovers: Vec<(Nanos, Life, String, String)>,
    /// What failed for it: when, at whom and what.
    pub failures: Vec<(Nanos, Life, String)>,
    /// Fences that were granted twice.
    pub granted_twice: Vec<u64>,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    /// Who had it.
    pub life: Life,
    /// When it was seen to be granted.
    pub granted: Nanos,
    /// When it was over, and whether its work was done. None for one that died.
    pub over: Option<(Nanos, bool)>,
    /// The messages that were handled in it.
    pub handled: Vec<MessageNumber>,
    /// What was said in it, as places in the chat's replies.
    pub replies: Vec<usize>,
}

/// Something that a user said.
#[derive(Debug, Default)]
pub struct Message {
    /// When.
    pub at: Nanos,
    /// The words.
    pub text: String,
    /// Whether it repeats what was not answered.
    pub again: bool,
    /// When it was given to whom.
    pub delivered: Vec<(Nanos, Life)>,
    /// When it was accepted by whom.
    pub accepted: Vec<(Nanos, Life)>,
    /// When it was handled by whom under which fence.
    pub handled: Vec<(Nanos, Life, u64)>,
}

/// Something that the bot said.
#[derive(Debug, Clone)]
pub struct Reply {
    /// When it arrived.
    pub at: Nanos,
    /// The words.
    pub text: String,
    /// Who sent it.
    pub life: Life,
    /// Under which fence.
    pub fence: Option<u64>,
    /// Before its sender looked at the guard.
    pub checked: Nanos,
    /// What the guard answered.
    pub allowed: bool,
}

/// Something that befell a process or the server.
#[derive(Debug, Clone)]
pub struct Fault {
    /// When it began.
    pub begin: Nanos,
    /// When it was over.
    pub end: Nanos,
    /// What it was.
    pub kind: String,
    /// Whether the server may have forgotten what it had answered.
    pub forgets: bool,
    /// Whom it befell, if it was one.
    pub life: Option<Life>,
}

/// The exclusive connection of one process.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Who.
    pub life: Life,
    /// From when.
    pub begin: Nanos,
    /// Until when.
    pub end: Nanos,
}

impl Turn {
    /// Whether its work was done, so that everything in it counts.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        matches!(self.over, Some((_, true)))
    }

    /// When it surely was over.
    #[must_use]
    pub fn end(&self) -> Nanos {
        self.over.map_or(Nanos::MAX, |(at, _)| at)
    }
}

/// Puts the notes of the platform and of the processes together.
#[must_use]
pub fn assemble(platform: &[Entry], lives: Vec<(Life, Vec<Entry>)>) -> Story {
    let mut story = Story::default();
    let mut chat_of = BTreeMap::new();
    let mut open = BTreeMap::new();
    for Entry { at, event } in platform {
        story.end = story.end.max(*at);
        story.platform(*at, event, &mut chat_of, &mut open);
    }
    for (_, at) in open {
        story.faults[at].end = Nanos::MAX;
    }
    for (life, entries) in lives {
        story.lives.entry(life).or_default();
        for Entry { at, event } in entries {
            story.end = story.end.max(at);
            story.replica(life, at, event, &chat_of);
        }
    }
    for chat in story.chats.values_mut() {
        for (place, reply) in chat.replies.iter().enumerate() {
            if let Some(turn) = reply.fence.and_then(|fence| chat.turns.get_mut(&fence)) {
                turn.replies.push(place);
            }
        }
    }
    story
}

impl Story {
    fn chat(&mut self, chat: &str) -> &mut ChatStory {
        self.chats.entry(chat.to_owned()).or_default()
    }

    fn message(
        &mut self,
        number: MessageNumber,
        chats: &BTreeMap<MessageNumber, String>,
    ) -> Option<&mut Message> {
        self.chats.get_mut(chats.get(&number)?)?.messages.get_mut(&number)
    }

    fn platform(
        &mut self,
        at: Nanos,
        event: &Event,
        chats: &mut BTreeMap<MessageNumber, String>,
        open: &mut BTreeMap<u64, usize>,
    ) {
        match event.clone() {
            Event::Said { chat, message, text, again } => {
                let said = Message { at, text, again, ..Message::default() };
                self.chat(&chat).messages.insert(message, said);
                chats.insert(message, chat);
            }
            Event::Delivered { message, life } => {
                if let Some(message) = self.message(message, chats) {
                    message.delivered.push((at, life));
                }
            }
            Event::Accepted { message, life } => {
                if let Some(message) = self.message(message, chats) {
                    message.accepted.push((at, life));
                }
            }
            Event::Replied { chat, text, life, fence, checked, allowed } => {
                let reply = Reply { at, text, life, fence, checked, allowed };
                self.chat(&chat).replies.push(reply);
            }
            Event::Connected { life } => {
                self.connections.push(Connection { life, begin: at, end: Nanos::MAX });
            }
            Event::Disconnected { life } => {
                let mut connections = self.connections.iter_mut();
                if let Some(last) = connections.rfind(|it| it.life == life && it.end == Nanos::MAX)
                {
                    last.end = at;
                }
            }
            Event::Silence { chat, since } => self.chat(&chat).silences.push((since, at)),
            Event::Dead { chat } => self.chat(&chat).dead = true,
            Event::Fault { number, kind, forgets, life } => {
                open.insert(number, self.faults.len());
                self.faults.push(Fault { begin: at, end: at, kind, forgets, life });
            }
            Event::Healed { number } => {
                if let Some(fault) = open.remove(&number) {
                    self.faults[fault].end = at;
                }
            }
            Event::Killed { life } => self.lives.entry(life).or_default().killed = Some(at),
            Event::NeverStopped { life } => {
                self.lives.entry(life).or_default().never_stopped = true;
            }
            _ => {}
        }
    }

    fn replica(
        &mut self,
        life: Life,
        at: Nanos,
        event: Event,
        chats: &BTreeMap<MessageNumber, String>,
    ) {
        match event {
            Event::Started { version, decision } => {
                let own = self.lives.entry(life).or_default();
                (own.started, own.version, own.decision) = (Some(at), version, Some(decision));
            }
            Event::Granted { chat, fence } => {
                let (over, handled, replies) = (None, Vec::new(), Vec::new());
                let turn = Turn { life, granted: at, over, handled, replies };
                let chat = self.chat(&chat);
                if chat.turns.insert(fence, turn).is_some() {
                    chat.granted_twice.push(fence);
                }
            }
            Event::Over { chat, fence, clean } => {
                if let Some(turn) = self.chat(&chat).turns.get_mut(&fence) {
                    turn.over = Some((at, clean));
                }
            }
            Event::Handled { chat, message, fence } => {
                if let Some(turn) = self.chat(&chat).turns.get_mut(&fence) {
                    turn.handled.push(message);
                }
                if let Some(message) = self.message(message, chats) {
                    message.handled.push((at, life, fence));
                }
            }
            Event::Handover { chat, name, outcome } => {
                self.chat(&chat).handovers.push((at, life, name, outcome));
            }
            Event::Failed { chat: Some(chat), during, error } => {
                self.chat(&chat).failures.push((at, life, format!("{during}: {error}")));
            }
            Event::Stalled { length } => {
                let own = self.lives.entry(life).or_default();
                own.stalls.push((at.saturating_sub(length), at));
            }
            Event::Stopped { unhandled } => {
                self.lives.entry(life).or_default().stopped = Some((at, unhandled));
            }
            _ => {}
        }
    }
}
