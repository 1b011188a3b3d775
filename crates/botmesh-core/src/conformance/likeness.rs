//! A case about the inbox that compares whole sequences of calls with the store in memory.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::case::{GRAIN, ensure_eq};
use super::inbox::message;
use super::store::{Space, body, chat, inbox};
use super::{CaseError, StoreFixture};
use crate::coordination::{AcquireTurn, Begins, ChatTurn, Coordinator, JournaledTurns, TurnGuard};
use crate::id::{ChatKey, Fence, MessageId, Position, ProviderId, Revision};
use crate::store::{
    Admission, Begun, CheckpointChange, Commit, Committed, MemoryStore, NewRecord, Postponement,
    Retention, Store,
};

const HOUR: Duration = Duration::from_secs(3600);
const SEQUENCES: u64 = 8;
const CALLS: usize = 60;

/// G1–G8: whatever is called in whatever order, the answers are those of the store in memory.
/// Positions and revisions are compared by the order in which they were given.
pub async fn any_sequence_of_calls_is_answered_as_by_the_store_in_memory(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    inbox(&*store)?;
    compare(&*store, None, async |time| fixture.pass(time).await).await
}

/// Compares a store with the one in memory; `held` takes messages in and ends them under turns.
pub(super) async fn compare(
    store: &dyn Store,
    held: Option<&Held<'_>>,
    pass: impl AsyncFn(Duration),
) -> Result<(), CaseError> {
    for seed in 1..=SEQUENCES {
        let mut choice = Choice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Other chats in each sequence, so that they need no space of their own.
        let chats = [chat(&format!("{seed} a"))?, chat(&format!("{seed} b"))?];
        let model = MemoryStore::new();
        let (mut real, mut like) = (Side::new(store, held), Side::new(&model, None));
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let call = Call::choose(&mut choice);
            calls.push(call);
            let (found, wanted) = (real.make(call, &chats).await?, like.make(call, &chats).await?);
            ensure_eq!(found, wanted, "sequence {seed}: the last of {calls:?}");
            // What ends now has ended for coarse clocks, too.
            pass(GRAIN + GRAIN).await;
        }
    }
    Ok(())
}

/// Who has the turns of the chats, so that what is taken in has to wait and is not begun.
pub(super) struct Held<'a> {
    coordinator: &'a dyn Coordinator,
    turns: Mutex<HashMap<ChatKey, ChatTurn>>,
}

impl<'a> Held<'a> {
    pub(super) fn new(coordinator: &'a dyn Coordinator) -> Self {
        Self { coordinator, turns: Mutex::default() }
    }

    fn journaled(&self) -> Result<&'a dyn JournaledTurns, CaseError> {
        self.coordinator.journaled().ok_or(CaseError::NotRun("turns do not take an inbox along"))
    }

    /// Sees to it that the turn of the chat is held.
    async fn hold(&self, chat: &ChatKey) -> Result<TurnGuard, CaseError> {
        let held = self.turns.lock().get(chat).map(ChatTurn::guard);
        if let Some(held) = held {
            return Ok(held);
        }
        let ticket = self.coordinator.reserve(chat).await?;
        let turn = self.coordinator.acquire_turn(ticket, AcquireTurn::new()).await?;
        let guard = turn.guard();
        self.turns.lock().insert(chat.clone(), turn);
        Ok(guard)
    }

    async fn admit(&self, new: NewRecord<'_>) -> Result<Admission, CaseError> {
        self.hold(new.chat).await?;
        let ingested = self.journaled()?.ingest(new).await;
        let ingested = ingested.map_err(|error| CaseError::Violation(format!("{error:?}")))?;
        ensure_eq!(ingested.begins, Begins::Later, "a message whose turn another has");
        let is_new = matches!(ingested.admission, Admission::New { .. });
        ensure_eq!(ingested.place.is_some(), is_new, "whether a place was reserved");
        if let Some(Err(error)) = ingested.place {
            return Err(error.into());
        }
        Ok(ingested.admission)
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, CaseError> {
        let guard = self.hold(commit.chat).await?;
        let committed = self.journaled()?.commit(&guard, commit).await?;
        if let Committed::Applied(_) = committed {
            self.turns.lock().remove(commit.chat);
        }
        Ok(committed)
    }
}

/// One of the calls, its choices as numbers.
#[derive(Debug, Clone, Copy)]
enum Call {
    Admit { chat: usize, message: u64, is_claim: bool, lease: Duration },
    Begin { chat: usize, fence: u64 },
    Commit { chat: usize, which: usize, fence: u64, checkpoint: u64 },
    Note { chat: usize, which: usize, fence: u64 },
    Postpone { chat: usize, which: usize, fence: u64, retry_in: Duration, sends: bool },
    Bury { chat: usize, which: usize, fence: u64 },
    Release { chat: usize, which: usize },
    Revive { chat: usize, which: usize },
    Take,
    Dead,
    Forget { done: Duration, dead: Duration },
    Load { chat: usize },
}

impl Call {
    fn choose(choice: &mut Choice) -> Self {
        let (chat, which) = (choice.below(2), choice.below(6));
        let fence = 1 + choice.number() % 4;
        let time = |choice: &mut Choice| [Duration::ZERO, HOUR][choice.below(2)];
        match choice.below(24) {
            0..=4 => Self::Admit {
                chat,
                message: choice.number() % 6,
                is_claim: choice.below(4) == 0,
                lease: time(choice),
            },
            5..=8 => Self::Begin { chat, fence },
            9..=12 => Self::Commit { chat, which, fence, checkpoint: choice.number() % 5 },
            13 => Self::Note { chat, which, fence },
            14 | 15 => Self::Postpone {
                chat,
                which,
                fence,
                retry_in: time(choice),
                sends: choice.below(2) == 0,
            },
            16 | 17 => Self::Bury { chat, which, fence },
            18 => Self::Release { chat, which },
            19 => Self::Revive { chat, which },
            20 => Self::Take,
            21 => Self::Dead,
            22 => Self::Forget { done: time(choice), dead: time(choice) },
            _ => Self::Load { chat },
        }
    }
}

/// A store, with the positions and revisions that it gave.
struct Side<'a> {
    store: &'a dyn Store,
    held: Option<&'a Held<'a>>,
    positions: [Vec<Position>; 2],
    revisions: [Vec<Revision>; 2],
}

impl<'a> Side<'a> {
    fn new(store: &'a dyn Store, held: Option<&'a Held<'a>>) -> Self {
        Self { store, held, positions: Default::default(), revisions: Default::default() }
    }

    /// One of the latest positions.
    fn position(&self, chat: usize, which: usize) -> Position {
        self.positions[chat].iter().rev().nth(which).copied().unwrap_or(Position::new(1))
    }

    fn index(&self, chat: usize, position: Position) -> Option<usize> {
        self.positions[chat].iter().position(|known| *known == position)
    }

    /// The answer as a text without the store's own numbers.
    async fn make(&mut self, call: Call, chats: &[ChatKey; 2]) -> Result<String, CaseError> {
        let inbox = inbox(self.store)?;
        Ok(match call {
            Call::Admit { chat, message: id, is_claim, lease } => {
                let id = message(&format!("m{id}"))?;
                // A message without an id has to be new each time.
                let id: Option<&MessageId> = (id.as_str() != "m0").then_some(&id);
                let text = format!("body {}", self.positions[chat].len());
                let body = (!is_claim).then_some(&*text);
                let new = NewRecord { chat: &chats[chat], message: id, body, lease, most: 4 };
                let admission = match self.held {
                    Some(held) => held.admit(new).await?,
                    None => inbox.admit(new).await?,
                };
                match admission {
                    Admission::New { position, is_behind } => {
                        let grows = self.positions[chat].last().is_none_or(|last| *last < position);
                        self.positions[chat].push(position);
                        format!("new, grows: {grows}, behind: {is_behind}")
                    }
                    other => format!("{other:?}"),
                }
            }
            Call::Begin { chat, fence } => {
                match inbox.begin(&chats[chat], Fence::new(fence), HOUR).await? {
                    Begun::Record(record) => {
                        let index = self.index(chat, record.position);
                        let told = (record.body, record.attempts, record.sends, record.error);
                        format!("{index:?} {told:?} {}", record.has_more)
                    }
                    Begun::NotYet(_) => "not yet".to_owned(),
                    other => format!("{other:?}"),
                }
            }
            Call::Commit { chat, which, fence, checkpoint } => {
                self.commit(&chats[chat], chat, which, fence, checkpoint).await?
            }
            Call::Note { chat, which, fence } => {
                let (position, fence) = (self.position(chat, which), Fence::new(fence));
                let noted = inbox.note_sends(&chats[chat], position, fence, "noted").await?;
                noted.to_string()
            }
            Call::Postpone { chat, which, fence, retry_in, sends } => {
                let (position, fence) = (self.position(chat, which), Fence::new(fence));
                let sends = sends.then_some("postponed");
                let later = Postponement { attempts: 7, error: "later", sends, retry_in };
                inbox.postpone(&chats[chat], position, fence, later).await?.to_string()
            }
            Call::Bury { chat, which, fence } => {
                let (position, fence) = (self.position(chat, which), Fence::new(fence));
                inbox.bury(&chats[chat], position, fence, "dead").await?.to_string()
            }
            Call::Release { chat, which } => {
                inbox.release(&chats[chat], self.position(chat, which)).await?;
                String::new()
            }
            Call::Revive { chat, which } => {
                let position = self.position(chat, which);
                inbox.revive(&chats[chat], position).await?.to_string()
            }
            Call::Take => {
                let provider = ProviderId::new(chats[0].provider());
                let provider = provider.map_err(|e| CaseError::Violation(e.to_string()))?;
                let mut found = inbox.take_waiting(&provider, HOUR, 1000).await?;
                // What other sequences left behind is not meant.
                found.retain(|chat| chats.contains(chat));
                found.sort();
                format!("{found:?}")
            }
            Call::Dead => {
                let mut told = String::new();
                for letter in inbox.dead_letters(None, 1000).await? {
                    let chat = chats.iter().position(|chat| *chat == letter.chat);
                    let Some(chat) = chat else { continue };
                    let index = self.index(chat, letter.position);
                    let letter = (letter.body, letter.attempts, letter.error);
                    told += &format!("{chat} {index:?} {letter:?}; ");
                }
                told
            }
            Call::Forget { done, dead } => {
                // How many is not compared: whether an ended record without an id is one is open.
                inbox.forget(Retention { done, dead }, 1000).await?;
                String::new()
            }
            Call::Load { chat } => {
                let row = self.store.load_checkpoint(&chats[chat]).await?;
                format!("{:?}", row.map(|row| (row.fence, row.body)))
            }
        })
    }

    async fn commit(
        &mut self,
        key: &ChatKey,
        chat: usize,
        which: usize,
        fence: u64,
        checkpoint: u64,
    ) -> Result<String, CaseError> {
        let last = self.revisions[chat].last().copied();
        let text = format!("checkpoint {}", self.revisions[chat].len());
        let checkpoint = match checkpoint {
            0 | 1 => CheckpointChange::Nothing,
            2 => CheckpointChange::Set { write: body(&text), expected: None },
            3 => CheckpointChange::Set { write: body(&text), expected: last },
            _ => CheckpointChange::Clear { expected: last.unwrap_or(Revision::new(1)) },
        };
        let (position, fence) = (self.position(chat, which), Fence::new(fence));
        let commit = Commit { chat: key, position, fence, checkpoint };
        let committed = match self.held {
            Some(held) => held.commit(commit).await?,
            None => inbox(self.store)?.commit(commit).await?,
        };
        match committed {
            Committed::Applied(revision) => {
                let is_new = revision.is_none_or(|new| !self.revisions[chat].contains(&new));
                self.revisions[chat].extend(revision);
                Ok(format!("applied, set: {}, new: {is_new}", revision.is_some()))
            }
            Committed::Refused => Ok("refused".to_owned()),
        }
    }
}

/// Numbers that look random and are the same each time.
struct Choice(u64);

impl Choice {
    const fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.number()).unwrap_or_default() % bound
    }
}
