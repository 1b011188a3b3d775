use std::sync::Arc;

use super::conversing::{Active, Claimed, Definition, State, Waiting};
use super::event::Activity;
use super::restoring::Found;
use super::turn::Turn;
use super::{Context, Runtime};
use crate::error::BotError;
use crate::flow::Input;
use crate::message::Message;

/// The way of a message into the conversation of its chat.
impl Runtime {
    /// Gives a message to the chat's conversation, if one waits for it.
    pub(super) async fn continue_conversation(
        self: &Arc<Self>,
        turn: &Turn,
        message: Box<Message>,
    ) -> Result<Claimed, BotError> {
        if let Some(mut active) = self.conversations.take(turn.key()) {
            active.listener.hears(&message);
            return Ok(self.answer(turn, active, message).await);
        }
        let listener = || self.listener(&message);
        let mut restored = match self.restore(turn, listener).await? {
            Found::Nothing => return Ok(Claimed::Free(message)),
            Found::Conversation(restored) => restored,
            Found::Broken(info, stored) => {
                return Box::pin(self.fall_back(turn, info, stored, message)).await;
            }
        };
        self.resumed(turn, &restored.active);
        if restored.is_due {
            // Its time passed while nobody was there to see it: that comes first.
            let input = restored.active.wake_input(false);
            self.drive_flow(turn, restored.active, input).await;
            let Some(active) = self.conversations.take(turn.key()) else {
                return Ok(Claimed::Free(message));
            };
            restored.active = active;
        }
        Ok(self.answer(turn, restored.active, message).await)
    }

    async fn answer(
        self: &Arc<Self>,
        turn: &Turn,
        active: Box<Active>,
        message: Box<Message>,
    ) -> Claimed {
        match active.state {
            State::Function(..) => self.answer_function(turn, active, message).await,
            State::Flow(_) => self.drive_flow(turn, active, Input::Message(*message)).await,
        }
    }

    /// Enters the conversation with this number, in place of the one that waits, if any.
    pub(super) async fn enter(
        self: &Arc<Self>,
        turn: &Turn,
        number: usize,
        message: &Message,
    ) -> Result<(), BotError> {
        let mut replaced = self.conversations.take(turn.key());
        if let Some(replaced) = &mut replaced {
            replaced.disarm(&self.timers);
        }
        let stored = replaced.and_then(|replaced| replaced.stored);
        let listener = self.listener(message).await?;
        let run = turn.run_id();
        match self.conversations.definition(number) {
            Definition::Function { start, .. } => {
                if let Some(stored) = stored {
                    self.clear_checkpoint(turn, stored).await?;
                }
                let state = State::Function(start(), Waiting::Rest);
                self.drive_function(turn, Box::new(Active::new(number, run, listener, state)))
                    .await;
            }
            Definition::Flow { flow, .. } => {
                let state = State::Flow(Box::new((flow.start(run)?, None)));
                let mut active = Box::new(Active::new(number, run, listener, state));
                active.stored = stored;
                self.drive_flow(turn, active, Input::Enter).await;
            }
        }
        Ok(())
    }

    /// Removes what the store has of a conversation that has ended.
    pub(super) async fn clear_ended(&self, turn: &Turn, ended: &mut Active) {
        if let Some(stored) = ended.stored.take()
            && let Err(error) = self.clear_checkpoint(turn, stored).await
        {
            self.conversation_failed(turn, ended.number, error);
        }
    }

    /// Enters the conversation that user code asked for through its context, if it did.
    pub(super) async fn enter_if_asked(
        self: &Arc<Self>,
        turn: &Turn,
        context: &Context,
    ) -> Result<(), BotError> {
        match context.take_entered() {
            Some(number) => Box::pin(self.enter(turn, number, context.message())).await,
            None => Ok(()),
        }
    }

    /// Reports that a conversation could not go on. Where a checkpoint and a record have all that
    /// is needed to try it again, the record fails.
    pub(super) fn conversation_failed(&self, turn: &Turn, number: usize, error: BotError) {
        let during = Activity::Conversation(self.conversations.definition(number).name().clone());
        match turn.record() {
            Some(record) if self.keeping_of(number).is_checkpointed() => record.fail(during, error),
            _ => self.events.error(Some(turn.key()), during, error),
        }
    }
}
