use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::conversing::{Active, Claimed, Definition, State};
use super::event::Event;
use super::handover::{Fallback, HandoverInfo, HandoverReason};
use super::keeping::{Keeping, Stub};
use super::scene::Listener;
use super::turn::Turn;
use super::writer::Stored;
use crate::coordination::{CoordinatorEvent, HandoverOutcome};
use crate::error::BotError;
use crate::flow::{RestoreError, Run, SavedFlow};
use crate::id::ConversationName;
use crate::message::{Message, Reply};
use crate::text::t;

/// A conversation that was read from the store.
pub(super) struct Restored {
    pub(super) active: Box<Active>,
    /// Whether its wait has lasted as long as it may, or its rest is over.
    pub(super) is_due: bool,
    /// How long that will take otherwise; none if it waits for its user alone.
    pub(super) left: Option<Duration>,
}

/// What the store has of a chat's conversation.
pub(super) enum Found {
    Nothing,
    Conversation(Restored),
    /// A conversation that cannot go on here.
    Broken(HandoverInfo, Stored),
}

/// Why a body does not restore.
struct Broken {
    name: Option<ConversationName>,
    reason: HandoverReason,
    detail: String,
}

impl Runtime {
    /// Reads the chat's conversation from the store, if it has one there.
    pub(super) async fn restore<L>(
        self: &Arc<Self>,
        turn: &Turn,
        listener: impl FnOnce() -> L,
    ) -> Result<Found, BotError>
    where
        L: Future<Output = Result<Listener, BotError>>,
    {
        let chat = turn.key();
        if !self.keeps_any() || self.conversations.is_known_absent(chat, self.absent_under(turn)) {
            return Ok(Found::Nothing);
        }
        let adopted = self.adopt_checkpoint(turn).await;
        let Some((checkpoint, stored)) = adopted.inspect_err(|_| self.wake_dropped(chat))? else {
            self.conversations.note_absent(chat, self.absent_under(turn));
            return Ok(Found::Nothing);
        };
        let (number, run) = match self.read_body(&checkpoint.body) {
            Ok(found) => found,
            Err(Broken { name: Some(name), reason, .. }) if self.coordinated.is_some() => {
                let info = HandoverInfo { chat: chat.clone(), name, reason };
                return Ok(Found::Broken(info, stored));
            }
            Err(Broken { detail, .. }) => {
                self.clear_checkpoint(turn, stored).await?;
                tracing::warn!(reason = detail, "a stored conversation was given up");
                self.events.emit(Event::Unrestorable { chat: chat.clone(), reason: detail });
                return Ok(Found::Nothing);
            }
        };
        let id = run.id();
        let state = State::Flow(Box::new((run, None)));
        let mut active = Box::new(Active::new(number, id, listener().await?, state));
        if self.keeping_of(number).is_checkpointed() {
            active.stored = Some(stored);
        } else {
            // Another replica forwards this flow and this one does not: it goes on in memory.
            self.clear_checkpoint(turn, stored).await?;
        }
        let is_due = checkpoint.wake_in.is_some_and(|left| left.is_zero());
        let left = checkpoint.wake_in.filter(|left| !left.is_zero());
        if left.is_some() {
            active.begin_wait(&self.timers, chat, left, None);
        }
        Ok(Found::Conversation(Restored { active, is_due, left }))
    }

    /// Reports that a conversation goes on here, where there are replicas.
    pub(super) fn resumed(&self, turn: &Turn, active: &Active) {
        if self.coordinated.is_some() {
            let name = self.conversations.definition(active.number).name().clone();
            self.handed_over(turn, name, HandoverOutcome::Resumed);
        }
    }

    pub(super) fn keeping_of(&self, number: usize) -> Keeping {
        match self.conversations.definition(number) {
            Definition::Function { .. } => Keeping::Nothing,
            Definition::Flow { flow, .. } => self.keeping(flow.persistence()),
        }
    }

    fn read_body(&self, body: &str) -> Result<(usize, Run), Broken> {
        if let Ok(Stub { stub }) = serde_json::from_str(body) {
            let detail = format!("{stub} lived in memory only");
            return Err(Broken { name: Some(stub), reason: HandoverReason::InMemory, detail });
        }
        let unreadable = |name: Option<ConversationName>, error: &RestoreError| {
            let reason = match error {
                RestoreError::Changed { .. } | RestoreError::NoSuchStep { .. } => {
                    HandoverReason::Changed
                }
                _ => HandoverReason::Unreadable,
            };
            Broken { name, reason, detail: error.to_string() }
        };
        let saved = SavedFlow::read(body).map_err(|error| unreadable(None, &error))?;
        let number = self.conversations.number(&saved.name);
        let definition = number.map(|number| (number, self.conversations.definition(number)));
        let Some((number, Definition::Flow { name, flow })) = definition else {
            return Err(Broken {
                name: ConversationName::new(saved.name.as_str()).ok(),
                reason: HandoverReason::Changed,
                detail: format!("the bot has no flow {:?} any more", saved.name),
            });
        };
        let run = flow.restore(body).map_err(|error| unreadable(Some(name.clone()), &error))?;
        Ok((number, run))
    }

    /// Does what is set for a conversation that cannot go on here.
    pub(super) async fn fall_back(
        self: &Arc<Self>,
        turn: &Turn,
        info: HandoverInfo,
        stored: Stored,
        message: Box<Message>,
    ) -> Result<Claimed, BotError> {
        self.clear_checkpoint(turn, stored).await?;
        let name = info.name.clone();
        let number = self.conversations.number(name.as_str());
        let fallback = self.coordinated.as_ref().map(|it| it.settings.handover.fallback.clone());
        let outcome = match (fallback, number) {
            (Some(Fallback::Notify), _) => {
                let context = self.context(turn, message);
                context.reply(self.interruption()).await?;
                self.handed_over(turn, name, HandoverOutcome::Notified);
                return Ok(Claimed::Taken);
            }
            (Some(Fallback::Restart), Some(number)) => {
                self.handed_over(turn, name, HandoverOutcome::Restarted);
                self.enter(turn, number, &message).await?;
                return Ok(Claimed::Taken);
            }
            (Some(Fallback::Call(function)), _) => {
                let context = self.context(turn, message.clone());
                let consumed = function.decide(info, context.clone()).await?;
                self.enter_if_asked(turn, &context).await?;
                if consumed {
                    self.handed_over(turn, name, HandoverOutcome::Handled);
                    return Ok(Claimed::Taken);
                }
                HandoverOutcome::Dropped
            }
            _ => HandoverOutcome::Dropped,
        };
        self.handed_over(turn, name, outcome);
        Ok(Claimed::Free(message))
    }

    /// Gives up a conversation that cannot go on here, where nobody wrote.
    pub(super) async fn give_up(
        &self,
        turn: &Turn,
        info: HandoverInfo,
        stored: Stored,
    ) -> Result<(), BotError> {
        self.clear_checkpoint(turn, stored).await?;
        self.handed_over(turn, info.name, HandoverOutcome::Dropped);
        Ok(())
    }

    fn interruption(&self) -> Reply {
        let own =
            self.coordinated.as_ref().and_then(|it| it.settings.handover.notify_message.clone());
        own.unwrap_or_else(|| t("core.conversation.interrupted").into()).into()
    }

    fn handed_over(&self, turn: &Turn, name: ConversationName, outcome: HandoverOutcome) {
        let key = turn.key().clone();
        self.emit_coordination(CoordinatorEvent::Handover { key, name, outcome });
    }
}
