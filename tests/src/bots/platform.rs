//! A messaging platform on loopback: gives each message to some replica, again to another one when
//! it is not accepted in time, and notes what it is sent by whom.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use super::EXCLUSIVE;
use super::notes::{Event, Life, MessageNumber, Notebook};
use super::wire::{FromBot, Reader, ToBot, write};
use botmesh_core::testing::Dice;

/// How long a replica has to accept a message before another one gets it.
const ACCEPTANCE: Duration = Duration::from_millis(700);
/// The pause before a message is offered again.
const AGAIN: Duration = Duration::from_millis(20);

/// Which replica gets a message first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// Any.
    Random,
    /// Each in its turn.
    Alternate,
}

/// The running platform. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Platform {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    notes: Arc<Notebook>,
    balance: Balance,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    dice: Dice,
    connections: Vec<Connection>,
    next_connection: u64,
    next_message: MessageNumber,
    /// The next of the replicas that take turns.
    next: usize,
    /// Messages that are not accepted yet.
    open: HashMap<MessageNumber, Open>,
    chats: HashMap<String, mpsc::UnboundedSender<String>>,
    trap: Option<(Life, oneshot::Sender<()>)>,
    /// The keys of sends that were taken.
    keys: HashSet<String>,
    /// How many sends came again and were recognised.
    recognised: usize,
}

#[derive(Debug)]
struct Open {
    provider: &'static str,
    answers: mpsc::UnboundedSender<(Life, Answer)>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    life: Life,
    provider: String,
    lines: mpsc::UnboundedSender<ToBot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Taken,
    Refused,
    Gone,
}

impl Platform {
    /// Starts it on a port of this machine.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(seed: u64, balance: Balance, notes: Arc<Notebook>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no port is free")?;
        let port = listener.local_addr()?.port();
        let inner = Inner {
            dice: Dice::new(seed, 5),
            connections: Vec::new(),
            next_connection: 0,
            next_message: 0,
            next: 0,
            open: HashMap::new(),
            chats: HashMap::new(),
            trap: None,
            keys: HashSet::new(),
            recognised: 0,
        };
        let state = Arc::new(State { notes, balance, inner: Mutex::new(inner) });
        let accepting = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&accepting), stream));
            }
        });
        Ok(Self { port, state })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The notes of the run.
    #[must_use]
    pub fn notes(&self) -> &Notebook {
        &self.state.notes
    }

    /// What the bot says in a chat from now on.
    #[must_use]
    pub fn listen(&self, chat: &str) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.state.inner.lock().chats.insert(chat.to_owned(), sender);
        receiver
    }

    /// A user says something, which reaches some replica as soon as one is there.
    pub fn say(&self, provider: &'static str, chat: &str, text: &str, again: bool) {
        tokio::spawn(self.bring(provider, chat, text, again));
    }

    /// A user says something; resolves when a replica has accepted it.
    pub fn bring(
        &self,
        provider: &'static str,
        chat: &str,
        text: &str,
        again: bool,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (answers, mut answered) = mpsc::unbounded_channel();
        let message = {
            let mut inner = self.state.inner.lock();
            inner.next_message += 1;
            let message = inner.next_message;
            inner.open.insert(message, Open { provider, answers });
            message
        };
        let (chat, text) = (chat.to_owned(), text.to_owned());
        let said = Event::Said { chat: chat.clone(), message, text: text.clone(), again };
        self.state.notes.note(said);
        let state = Arc::clone(&self.state);
        async move {
            let line = ToBot::Message { message, chat, text };
            let mut last = None;
            while !state.offer(provider, &line, message, &mut last, &mut answered).await {
                tokio::time::sleep(AGAIN).await;
            }
            state.inner.lock().open.remove(&message);
        }
    }

    /// How many sends came again under a key that was known, and were shown to nobody.
    #[must_use]
    pub fn recognised(&self) -> usize {
        self.state.inner.lock().recognised
    }

    /// Resolves when the replica sends its next reply, whose receipt it will never see.
    #[must_use]
    pub fn trap(&self, life: Life) -> oneshot::Receiver<()> {
        let (sprung, waits) = oneshot::channel();
        self.state.inner.lock().trap = Some((life, sprung));
        waits
    }

    /// How many replicas are connected for a provider.
    #[must_use]
    pub fn connected(&self, provider: &str) -> usize {
        let inner = self.state.inner.lock();
        inner.connections.iter().filter(|it| it.provider == provider).count()
    }
}

impl State {
    /// Gives a message to a replica and waits for its answer, or that of one before it.
    async fn offer(
        &self,
        provider: &str,
        line: &ToBot,
        message: MessageNumber,
        last: &mut Option<Life>,
        answered: &mut mpsc::UnboundedReceiver<(Life, Answer)>,
    ) -> bool {
        let Some((life, lines)) = self.choose(provider, *last) else { return false };
        *last = Some(life);
        self.notes.note(Event::Delivered { message, life });
        if lines.send(line.clone()).is_err() {
            return false;
        }
        let taken = async {
            while let Some((from, answer)) = answered.recv().await {
                match answer {
                    Answer::Taken => return true,
                    Answer::Refused | Answer::Gone if from == life => return false,
                    _ => {}
                }
            }
            false
        };
        tokio::time::timeout(ACCEPTANCE, taken).await.unwrap_or(false)
    }

    /// A connection, another one than the last where there is one.
    fn choose(
        &self,
        provider: &str,
        last: Option<Life>,
    ) -> Option<(Life, mpsc::UnboundedSender<ToBot>)> {
        let mut inner = self.inner.lock();
        let Inner { dice, connections, next, .. } = &mut *inner;
        let mut able: Vec<_> = connections.iter().filter(|it| it.provider == provider).collect();
        able.sort_by_key(|it| it.life);
        let chosen = if provider == EXCLUSIVE {
            // Who connects last takes the place of the one before, as platforms have it.
            able.iter().max_by_key(|it| it.number).copied()
        } else {
            if able.len() > 1 {
                able.retain(|it| Some(it.life) != last);
            }
            match self.balance {
                Balance::Random => dice.choose(&able).copied(),
                Balance::Alternate => {
                    *next += 1;
                    able.get(*next % able.len().max(1)).copied()
                }
            }
        };
        chosen.map(|it| (it.life, it.lines.clone()))
    }

    fn take(&self, life: Life, lines: &mpsc::UnboundedSender<ToBot>, line: FromBot) {
        let (message, answer) = match line {
            FromBot::Hello { .. } => return,
            FromBot::Send { number, chat, text, key, fence, checked, allowed } => {
                let mut inner = self.inner.lock();
                if key.is_some_and(|key| !inner.keys.insert(key)) {
                    inner.recognised += 1;
                    let _ = lines.send(ToBot::Sent { number });
                    return;
                }
                // Noted under the lock, so that notes and chats have the same order.
                let event = Event::Replied {
                    chat: chat.clone(),
                    text: text.clone(),
                    life,
                    fence,
                    checked,
                    allowed,
                };
                self.notes.note(event);
                if let Some(listener) = inner.chats.get(&chat) {
                    let _ = listener.send(text);
                }
                // Who is to be killed at this reply never sees the receipt.
                let trap = inner.trap.take_if(|(victim, _)| *victim == life);
                let sprung = trap.is_some_and(|(_, sprung)| sprung.send(()).is_ok());
                if !sprung {
                    let _ = lines.send(ToBot::Sent { number });
                }
                return;
            }
            FromBot::Taken { message } => (message, Answer::Taken),
            FromBot::Refused { message } => (message, Answer::Refused),
        };
        if answer == Answer::Taken {
            self.notes.note(Event::Accepted { message, life });
        }
        if let Some(open) = self.inner.lock().open.get(&message) {
            let _ = open.answers.send((life, answer));
        }
    }

    fn connect(&self, life: Life, provider: &str, lines: &mpsc::UnboundedSender<ToBot>) -> u64 {
        let mut inner = self.inner.lock();
        inner.next_connection += 1;
        let number = inner.next_connection;
        let (provider, lines) = (provider.to_owned(), lines.clone());
        if provider == EXCLUSIVE {
            self.notes.note(Event::Connected { life });
        }
        inner.connections.push(Connection { number, life, provider, lines });
        number
    }

    fn disconnect(&self, number: u64) {
        let mut inner = self.inner.lock();
        let Some(at) = inner.connections.iter().position(|it| it.number == number) else { return };
        let Connection { life, provider, .. } = inner.connections.swap_remove(at);
        if provider == EXCLUSIVE {
            self.notes.note(Event::Disconnected { life });
        }
        for open in inner.open.values().filter(|open| open.provider == provider) {
            let _ = open.answers.send((life, Answer::Gone));
        }
    }
}

async fn serve(state: Arc<State>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (read, written) = stream.into_split();
    let mut reader = Reader::new(read);
    let Some(FromBot::Hello { life, provider }) = reader.next().await else { return };
    let (lines, queued) = mpsc::unbounded_channel();
    let number = state.connect(life, &provider, &lines);
    let received = async {
        while let Some(line) = reader.next().await {
            state.take(life, &lines, line);
        }
    };
    tokio::select! {
        () = received => {}
        // What it has sent before it was gone still counts.
        () = write(written, queued) => {}
    }
    state.disconnect(number);
}
