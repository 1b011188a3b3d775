use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::conversing::{Active, Claimed, State, Waiting};
use super::keeping::Keeping;
use super::scene::{Listener, Pause, Scene};
use super::turn::Turn;
use crate::conversation::{ConversationEnded, Response};
use crate::error::BotError;
use crate::flow::Persistence;
use crate::message::{Message, Reply};
use crate::question::{Invalid, Reading, WaitToken};
use crate::text::{Text, t};

/// What a function's drive came to.
enum Paused {
    /// It waits, at most this long.
    Waits(Option<Duration>),
    Ended(Result<(), BotError>),
}

/// Conversations that are asynchronous functions.
impl Runtime {
    pub(super) async fn answer_function(
        self: &Arc<Self>,
        turn: &Turn,
        mut active: Box<Active>,
        message: Box<Message>,
    ) -> Claimed {
        let State::Function(script, waiting) = &mut active.state else {
            return Claimed::Free(message);
        };
        let language = active.listener.language();
        let response = if self.conversations.is_cancel_word(&message, language, self.sender.texts())
        {
            Response::Failed(ConversationEnded::Cancelled.into())
        } else {
            let Waiting::Answer { question, token, failures } = waiting else {
                // It rests: the message is not for it.
                self.conversations.park(turn.key(), active);
                return Claimed::Free(message);
            };
            let scene = Scene { runtime: self, turn, listener: &active.listener };
            let told = match question.read(*message, token, |text| scene.shown(text)) {
                Reading::Answer(answer) => Ok(Response::Answered(Box::new(answer))),
                Reading::Expired => Err(Reply::text(t("core.button.expired"))),
                Reading::NotOffered(_) => {
                    *failures += 1;
                    if question.attempts().is_some_and(|most| *failures >= most) {
                        Ok(Response::Failed(ConversationEnded::TooManyAttempts.into()))
                    } else {
                        Err(question.to_reply(token).caption(question.why_not_offered()))
                    }
                }
            };
            match told {
                Ok(response) => response,
                Err(reply) => {
                    if let Err(error) = scene.say(reply).await {
                        self.conversation_failed(turn, active.number, error);
                    }
                    self.conversations.park(turn.key(), active);
                    return Claimed::Taken;
                }
            }
        };
        script.supply(response);
        self.drive_function(turn, active).await;
        Claimed::Taken
    }

    pub(super) async fn wake_function(self: &Arc<Self>, turn: &Turn, active: Box<Active>) {
        match &active.state {
            State::Function(script, Waiting::Rest) => script.supply(Response::Done),
            State::Function(script, Waiting::Answer { .. }) => {
                script.supply(Response::Failed(ConversationEnded::TimedOut.into()));
            }
            State::Flow(_) => {}
        }
        self.drive_function(turn, active).await;
    }

    /// Runs a function until it waits again or ends.
    pub(super) async fn drive_function(self: &Arc<Self>, turn: &Turn, mut active: Box<Active>) {
        let paused = self.settled(turn, self.run_function(turn, &mut active)).await;
        active.disarm(&self.timers);
        let number = active.number;
        let after = match paused {
            None => return,
            Some(Paused::Waits(after)) => after,
            Some(Paused::Ended(result)) => {
                if let Err(error) = result {
                    self.tell_ending(turn, number, &active.listener, error).await;
                }
                self.clear_ended(turn, &mut active).await;
                return;
            }
        };
        if self.keeping(Persistence::Memory) == Keeping::Stub {
            let name = self.conversations.definition(number).name();
            if let Err(error) = self.keep_stub(turn, name, after, &mut active.stored).await {
                self.conversation_failed(turn, number, error);
            }
        }
        active.begin_wait(&self.timers, turn.key(), after, None);
        self.conversations.park(turn.key(), active);
    }

    async fn run_function(self: &Arc<Self>, turn: &Turn, active: &mut Active) -> Paused {
        let Active { run, wait, listener, state, .. } = active;
        let State::Function(script, waiting) = state else { return Paused::Ended(Ok(())) };
        let scene = Scene { runtime: self, turn, listener };
        let token = WaitToken::new(*run, *wait + 1);
        loop {
            match scene.drive(script, false).await {
                Pause::Asks(question, again) => {
                    let mut reply = question.to_reply(&token);
                    if let Some(text) = again {
                        reply.text = text;
                    }
                    if let Err(error) = scene.say(reply).await {
                        script.supply(Response::Failed(error));
                        continue;
                    }
                    let after = question.waits().or(self.conversations.timeout());
                    *waiting = Waiting::Answer { question, token, failures: 0 };
                    return Paused::Waits(after);
                }
                Pause::Rests(rest) => {
                    *waiting = Waiting::Rest;
                    return Paused::Waits(Some(rest));
                }
                Pause::Ended(result) => return Paused::Ended(result),
            }
        }
    }

    /// Tells the user why a function ended early, or reports an error that is none of the user's
    /// doing.
    async fn tell_ending(
        self: &Arc<Self>,
        turn: &Turn,
        number: usize,
        listener: &Listener,
        error: BotError,
    ) {
        let text: Text = if let Some(ended) = error.downcast_ref::<ConversationEnded>() {
            t(ended.text_key()).into()
        } else if let Some(invalid) = error.downcast_ref::<Invalid>() {
            invalid.text().cloned().unwrap_or_else(|| t("core.answer.invalid").into())
        } else {
            self.conversation_failed(turn, number, error);
            return;
        };
        let scene = Scene { runtime: self, turn, listener };
        if let Err(error) = scene.say(text).await {
            self.conversation_failed(turn, number, error);
        }
    }
}
