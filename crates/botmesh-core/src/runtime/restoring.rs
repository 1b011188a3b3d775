use std::sync::Arc;

use super::Runtime;
use super::conversing::{Active, Definition, State};
use super::event::Event;
use super::scene::Listener;
use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::flow::Input;

/// A conversation that was read from the store.
pub(super) struct Restored {
    pub(super) active: Box<Active>,
    /// Whether its wait has lasted as long as it may, or its rest is over.
    pub(super) is_due: bool,
}

impl Restored {
    /// What happens to it when it is due.
    pub(super) fn wake_input(&self) -> Input {
        match &self.active.state {
            State::Flow(flow) if flow.0.is_paused() => Input::Woken,
            _ => Input::TimedOut,
        }
    }
}

impl Runtime {
    /// Reads the chat's conversation from the store, if it has one there.
    pub(super) async fn restore<L>(
        self: &Arc<Self>,
        guard: &TurnGuard,
        listener: impl FnOnce() -> L,
    ) -> Result<Option<Restored>, BotError>
    where
        L: Future<Output = Result<Listener, BotError>>,
    {
        let chat = guard.key();
        if !self.conversations.any_persistent() || self.conversations.is_known_absent(chat) {
            return Ok(None);
        }
        let Some((checkpoint, stored)) = self.adopt_checkpoint(guard).await? else {
            self.conversations.note_absent(chat);
            return Ok(None);
        };
        let restored = self.conversations.find_flow(&checkpoint.body).and_then(|number| match self
            .conversations
            .definition(number)
        {
            Definition::Flow { flow, .. } => match flow.restore(&checkpoint.body) {
                Ok(run) => Ok((number, run)),
                Err(error) => Err(error.to_string()),
            },
            Definition::Function { name, .. } => Err(format!("{name} is no flow")),
        });
        let (number, run) = match restored {
            Ok(found) => found,
            Err(reason) => {
                self.clear_checkpoint(guard, stored).await?;
                tracing::warn!(reason, "a stored conversation was given up");
                self.events.emit(Event::Unrestorable { chat: chat.clone(), reason });
                return Ok(None);
            }
        };
        let id = run.id();
        let state = State::Flow(Box::new((run, None)));
        let mut active = Box::new(Active::new(number, id, listener().await?, state));
        active.stored = Some(stored);
        let is_due = checkpoint.wake_in.is_some_and(|left| left.is_zero());
        if let Some(left) = checkpoint.wake_in.filter(|left| !left.is_zero()) {
            active.begin_wait(&self.timers, chat, Some(left), None);
        }
        Ok(Some(Restored { active, is_due }))
    }
}
