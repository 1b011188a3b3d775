use std::sync::Arc;

use super::conversing::{Active, Claimed, Definition, State, Waiting};
use super::event::Activity;
use super::restoring::Found;
use super::timer::{Wake, WakeReason};
use super::{Context, Runtime};
use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::flow::Input;
use crate::message::Message;

/// The way of a message or a wake-up into the conversation of its chat.
impl Runtime {
    /// Gives a message to the chat's conversation, if one waits for it.
    pub(super) async fn continue_conversation(
        self: &Arc<Self>,
        guard: &TurnGuard,
        message: Box<Message>,
    ) -> Result<Claimed, BotError> {
        if let Some(mut active) = self.conversations.take(guard.key()) {
            active.listener.hears(&message);
            return Ok(self.answer(guard, active, message).await);
        }
        let listener = || self.listener(&message);
        let mut restored = match self.restore(guard, listener).await? {
            Found::Nothing => return Ok(Claimed::Free(message)),
            Found::Conversation(restored) => restored,
            Found::Broken(info, stored) => {
                return Box::pin(self.fall_back(guard, info, stored, message)).await;
            }
        };
        self.resumed(guard, &restored);
        if restored.is_due {
            // Its time passed while nobody was there to see it: that comes first.
            let input = restored.wake_input();
            self.drive_flow(guard, restored.active, input).await;
            let Some(active) = self.conversations.take(guard.key()) else {
                return Ok(Claimed::Free(message));
            };
            restored.active = active;
        }
        Ok(self.answer(guard, restored.active, message).await)
    }

    async fn answer(
        self: &Arc<Self>,
        guard: &TurnGuard,
        active: Box<Active>,
        message: Box<Message>,
    ) -> Claimed {
        match active.state {
            State::Function(..) => self.answer_function(guard, active, message).await,
            State::Flow(_) => self.drive_flow(guard, active, Input::Message(*message)).await,
        }
    }

    /// Enters the conversation with this number, in place of the one that waits, if any.
    pub(super) async fn enter(
        self: &Arc<Self>,
        guard: &TurnGuard,
        number: usize,
        message: &Message,
    ) -> Result<(), BotError> {
        let mut replaced = self.conversations.take(guard.key());
        if let Some(replaced) = &mut replaced {
            replaced.disarm(&self.timers);
        }
        let stored = replaced.and_then(|replaced| replaced.stored);
        let listener = self.listener(message).await?;
        // Fences never repeat, so they tell the conversations of a chat apart.
        let run = guard.fence().get();
        match self.conversations.definition(number) {
            Definition::Function { start, .. } => {
                if let Some(stored) = stored {
                    self.clear_checkpoint(guard, stored).await?;
                }
                let state = State::Function(start(), Waiting::Rest);
                self.drive_function(guard, Box::new(Active::new(number, run, listener, state)))
                    .await;
            }
            Definition::Flow { flow, .. } => {
                let state = State::Flow(Box::new((flow.start(run)?, None)));
                let mut active = Box::new(Active::new(number, run, listener, state));
                active.stored = stored;
                self.drive_flow(guard, active, Input::Enter).await;
            }
        }
        Ok(())
    }

    /// Wakes a chat whose time has come.
    pub(super) async fn wake(
        self: &Arc<Self>,
        guard: &TurnGuard,
        wake: &Wake,
    ) -> Result<(), (Activity, BotError)> {
        let Some(active) = self.conversations.take(guard.key()) else {
            // With replicas, another one may have had the chat meanwhile and know nothing of the
            // moment: what was in memory here is put aside then, and the store says what is due.
            return match wake.reason {
                WakeReason::Stored => self.wake_stored(guard).await,
                _ if self.coordinated.is_some() => self.wake_stored(guard).await,
                _ => Ok(()),
            };
        };
        if !active.is_meant(wake.reason) {
            self.conversations.park(guard.key(), active);
            return Ok(());
        }
        match &active.state {
            State::Function(..) => self.wake_function(guard, active).await,
            State::Flow(flow) => {
                let input = match wake.reason {
                    _ if flow.0.is_paused() => Input::Woken,
                    WakeReason::Idle { .. } => Input::Idle,
                    _ => Input::TimedOut,
                };
                self.drive_flow(guard, active, input).await;
            }
        }
        Ok(())
    }

    async fn wake_stored(self: &Arc<Self>, guard: &TurnGuard) -> Result<(), (Activity, BotError)> {
        let listener = || self.unheard_listener(guard.key());
        let found = self.restore(guard, listener).await;
        let mut restored = match found.map_err(|error| (Activity::Checkpoint, error))? {
            Found::Nothing => return Ok(()),
            Found::Conversation(restored) => restored,
            Found::Broken(info, stored) => {
                let given_up = self.give_up(guard, info, stored).await;
                return given_up.map_err(|error| (Activity::Checkpoint, error));
            }
        };
        if restored.is_due {
            self.resumed(guard, &restored);
            let input = restored.wake_input();
            self.drive_flow(guard, restored.active, input).await;
        } else {
            // Somebody has written meanwhile.
            restored.active.disarm(&self.timers);
            if let Some(left) = restored.left {
                self.wake_stored_in(guard.key(), left);
            }
        }
        Ok(())
    }

    /// Removes what the store has of a conversation that has ended.
    pub(super) async fn clear_ended(&self, guard: &TurnGuard, ended: &mut Active) {
        if let Some(stored) = ended.stored.take()
            && let Err(error) = self.clear_checkpoint(guard, stored).await
        {
            self.conversation_failed(guard, ended.number, error);
        }
    }

    /// Enters the conversation that user code asked for through its context, if it did.
    pub(super) async fn enter_if_asked(
        self: &Arc<Self>,
        guard: &TurnGuard,
        context: &Context,
    ) -> Result<(), BotError> {
        match context.take_entered() {
            Some(number) => Box::pin(self.enter(guard, number, context.message())).await,
            None => Ok(()),
        }
    }

    pub(super) fn conversation_failed(&self, guard: &TurnGuard, number: usize, error: BotError) {
        let name = self.conversations.definition(number).name().clone();
        self.events.error(Some(guard.key()), Activity::Conversation(name), error);
    }
}
