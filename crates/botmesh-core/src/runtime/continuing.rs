use std::sync::Arc;

use super::Runtime;
use super::conversing::{Active, Claimed, Definition, State, Waiting};
use super::event::Activity;
use super::scene::{Listener, Pause, Scene};
use super::timer::Wake;
use crate::conversation::{ConversationEnded, Response};
use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::message::{Message, Reply};
use crate::question::{Invalid, Reading, WaitToken};
use crate::text::{Text, t};

impl Runtime {
    /// Gives a message to the chat's conversation, if one waits for it.
    pub(super) async fn continue_conversation(
        self: &Arc<Self>,
        guard: &TurnGuard,
        message: Message,
    ) -> Claimed {
        if !self.conversations.any() {
            return Claimed::Free(message);
        }
        let Some(mut active) = self.conversations.take(guard.key()) else {
            return Claimed::Free(message);
        };
        active.listener = Listener::of(&message);
        match active.state {
            State::Function(..) => self.answer_function(guard, active, message).await,
        }
    }

    /// Enters the conversation with this number, in place of the one that waits, if any.
    pub(super) async fn enter(
        self: &Arc<Self>,
        guard: &TurnGuard,
        number: usize,
        message: &Message,
    ) {
        if let Some(mut replaced) = self.conversations.take(guard.key()) {
            replaced.disarm(&self.timers);
        }
        let run = guard.fence().get();
        let listener = Listener::of(message);
        match self.conversations.definition(number) {
            Definition::Function { start, .. } => {
                let state = State::Function(start(), Waiting::Rest);
                let active = Box::new(Active::new(number, run, listener, state));
                self.drive_function(guard, active).await;
            }
        }
    }

    /// Wakes a chat whose time has come.
    pub(super) async fn wake(
        self: &Arc<Self>,
        guard: &TurnGuard,
        wake: &Wake,
    ) -> Result<(), (Activity, BotError)> {
        let Some(active) = self.conversations.take(guard.key()) else { return Ok(()) };
        if !active.is_meant(wake.reason) {
            self.conversations.park(guard.key().clone(), active);
            return Ok(());
        }
        match &active.state {
            State::Function(script, Waiting::Rest) => script.supply(Response::Done),
            State::Function(script, Waiting::Answer { .. }) => {
                script.supply(Response::Failed(ConversationEnded::TimedOut.into()));
            }
        }
        self.drive_function(guard, active).await;
        Ok(())
    }

    async fn answer_function(
        self: &Arc<Self>,
        guard: &TurnGuard,
        mut active: Box<Active>,
        message: Message,
    ) -> Claimed {
        let State::Function(script, waiting) = &mut active.state;
        let cancelled = self.conversations.is_cancel_word(&message, self.sender.texts());
        let Waiting::Answer { question, token, failures } = waiting else {
            // It rests: the message is not for it, unless it ends it.
            if cancelled {
                script.supply(Response::Failed(ConversationEnded::Cancelled.into()));
                self.drive_function(guard, active).await;
                return Claimed::Taken;
            }
            self.conversations.park(guard.key().clone(), active);
            return Claimed::Free(message);
        };
        if cancelled {
            script.supply(Response::Failed(ConversationEnded::Cancelled.into()));
            self.drive_function(guard, active).await;
            return Claimed::Taken;
        }
        let scene = Scene { runtime: self, guard, listener: &active.listener };
        let language = match scene.label_language(question).await {
            Ok(language) => language,
            Err(error) => {
                self.conversation_failed(guard, active.number, error);
                self.conversations.park(guard.key().clone(), active);
                return Claimed::Taken;
            }
        };
        let reading = question.read(message, token, |label| scene.shown(label, &language));
        let told = match reading {
            Reading::Answer(answer) => {
                script.supply(Response::Answered(Box::new(answer)));
                self.drive_function(guard, active).await;
                return Claimed::Taken;
            }
            Reading::NotOffered(_) => {
                *failures += 1;
                if question.attempts().is_some_and(|most| *failures >= most) {
                    script.supply(Response::Failed(ConversationEnded::TooManyAttempts.into()));
                    self.drive_function(guard, active).await;
                    return Claimed::Taken;
                }
                let text = question.retry_text().cloned();
                let text = text.unwrap_or_else(|| Text::from(t("core.answer.not-offered")));
                question.to_reply(token).caption(text)
            }
            Reading::Expired => Reply::text(t("core.button.expired")),
        };
        if let Err(error) = scene.say(told).await {
            self.conversation_failed(guard, active.number, error);
        }
        self.conversations.park(guard.key().clone(), active);
        Claimed::Taken
    }

    /// Runs a function until it waits again or ends.
    async fn drive_function(self: &Arc<Self>, guard: &TurnGuard, mut active: Box<Active>) {
        let Active { run, wait, listener, state, .. } = &mut *active;
        let State::Function(script, waiting) = state;
        let scene = Scene { runtime: self, guard, listener };
        let paused = scene.drive(script, || {
            *wait += 1;
            WaitToken::new(*run, *wait)
        });
        let after = match paused.await {
            Pause::Asks(question, token) => {
                let after = question.waits().or(self.conversations.timeout());
                *waiting = Waiting::Answer { question, token, failures: 0 };
                after
            }
            Pause::Rests(rest) => {
                *wait += 1;
                *waiting = Waiting::Rest;
                Some(rest)
            }
            Pause::Ended(result) => {
                active.disarm(&self.timers);
                if let Err(error) = result {
                    let Active { number, listener, .. } = *active;
                    self.tell_ending(guard, number, &listener, error).await;
                }
                return;
            }
        };
        active.disarm(&self.timers);
        if let Some(after) = after {
            active.arm_deadline(&self.timers, guard.key(), after);
        }
        self.conversations.park(guard.key().clone(), active);
    }

    /// Tells the user why a conversation ended early, or reports an error that is none of the
    /// user's doing.
    async fn tell_ending(
        self: &Arc<Self>,
        guard: &TurnGuard,
        number: usize,
        listener: &Listener,
        error: BotError,
    ) {
        let text = if let Some(ended) = error.downcast_ref::<ConversationEnded>() {
            Text::from(t(match ended {
                ConversationEnded::TimedOut => "core.conversation.timeout",
                ConversationEnded::TooManyAttempts => "core.answer.too-many",
                ConversationEnded::Cancelled => "core.conversation.cancelled",
            }))
        } else if let Some(invalid) = error.downcast_ref::<Invalid>() {
            invalid.text().cloned().unwrap_or_else(|| Text::from(t("core.answer.invalid")))
        } else {
            self.conversation_failed(guard, number, error);
            return;
        };
        let scene = Scene { runtime: self, guard, listener };
        if let Err(error) = scene.say(text).await {
            self.conversation_failed(guard, number, error);
        }
    }

    pub(super) fn conversation_failed(&self, guard: &TurnGuard, number: usize, error: BotError) {
        let name = self.conversations.definition(number).name().clone();
        self.events.error(Some(guard.key()), Activity::Conversation(name), error);
    }
}
