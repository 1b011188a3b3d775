use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::conversing::{Active, Claimed, Definition, State};
use super::scene::{Pause, Scene};
use super::turn::Turn;
use crate::conversation::Response;
use crate::error::BotError;
use crate::flow::{Effect, End, FlowDefinition, Input, Outcome};
use crate::message::Message;
use crate::provider::SendError;

/// What a flow's drive came to.
enum Rest {
    /// It waits for a message, with a new wait or the one from before.
    Waits { fresh: bool, deadline: Option<Duration>, idle: Option<Duration> },
    /// It stands still for this long.
    Pauses(Duration),
    /// It stands where it stood; the message, if any, is not for it.
    Unmoved(Option<Box<Message>>),
    /// It has ended; the message was not read.
    Ended(Option<Box<Message>>),
}

/// Conversations that are flows: executes what the machine says.
impl Runtime {
    /// Moves a flow on by `input` until it waits again or ends.
    pub(super) async fn drive_flow(
        self: &Arc<Self>,
        turn: &Turn,
        mut active: Box<Active>,
        input: Input,
    ) -> Claimed {
        let number = active.number;
        let Definition::Flow { flow, .. } = self.conversations.definition(number) else {
            return Claimed::Taken;
        };
        let moved = self.run_flow(turn, &**flow, &mut active, input);
        let rest = match self.settled(turn, moved).await {
            None => {
                active.disarm(&self.timers);
                self.wake_dropped(turn.key());
                return Claimed::Taken;
            }
            Some(Ok(rest)) => rest,
            Some(Err(error)) => {
                self.conversation_failed(turn, number, error);
                // What could not be written or sent leaves the run where its checkpoint is: it
                // is read again with the next message, or at its moment. Without one it is over.
                active.disarm(&self.timers);
                self.wake_dropped(turn.key());
                return Claimed::Taken;
            }
        };
        let claimed = match rest {
            Rest::Ended(message) => {
                active.disarm(&self.timers);
                self.clear_ended(turn, &mut active).await;
                return message.map_or(Claimed::Taken, Claimed::Free);
            }
            Rest::Unmoved(message) => message.map_or(Claimed::Taken, Claimed::Free),
            Rest::Pauses(time) => {
                active.begin_wait(&self.timers, turn.key(), Some(time), None);
                Claimed::Taken
            }
            Rest::Waits { fresh, deadline, idle } => {
                if fresh {
                    active.begin_wait(&self.timers, turn.key(), deadline, idle);
                }
                Claimed::Taken
            }
        };
        self.conversations.park(turn.key(), active);
        claimed
    }

    async fn run_flow(
        self: &Arc<Self>,
        turn: &Turn,
        flow: &dyn FlowDefinition,
        active: &mut Active,
        input: Input,
    ) -> Result<Rest, BotError> {
        let Active { number, listener, state, stored, unasked, .. } = active;
        let State::Flow(flow_state) = state else { return Ok(Rest::Unmoved(None)) };
        let (run, script) = &mut **flow_state;
        let scene = Scene { runtime: self, turn, listener };
        // A record that is cut off is processed again from where the store stands: nothing needs
        // to be written before its end.
        let is_kept_early =
            turn.record().is_none() && self.keeping(flow.persistence()).is_checkpointed();
        if let Some((question, token)) = unasked.take() {
            scene.say(question.to_reply(&token)).await?;
        }
        let mut effects = Vec::new();
        let mut input = input;
        loop {
            let outcome = flow.advance(run, input, &|text| scene.shown(text), &mut effects);
            let response = match outcome {
                Outcome::Wait(wait) => {
                    let deadline = wait.timeout.or(self.conversations.timeout());
                    // Written before the question is asked, so that a crash in between cannot
                    // take the next message for the answer to the question before; and after it,
                    // so that a restart does not ask again.
                    if is_kept_early && wait.fresh && !effects.is_empty() {
                        self.keep_run(turn, flow, run, true, deadline, stored).await?;
                    }
                    if let Err(error) = say_all(&scene, &mut effects).await {
                        let later = error.downcast_ref::<SendError>().is_some_and(may_pass);
                        if !later {
                            return Err(error);
                        }
                        // The user has not seen the question: it is asked with the next message.
                        self.conversation_failed(turn, *number, error);
                        *unasked = Some((Arc::clone(&wait.question), wait.token));
                        return Ok(Rest::Waits { fresh: wait.fresh, deadline, idle: wait.idle });
                    }
                    if wait.fresh {
                        self.keep_run(turn, flow, run, false, deadline, stored).await?;
                    }
                    return Ok(Rest::Waits { fresh: wait.fresh, deadline, idle: wait.idle });
                }
                Outcome::ResumeAfter(time) => {
                    say_all(&scene, &mut effects).await?;
                    self.keep_run(turn, flow, run, false, Some(time), stored).await?;
                    return Ok(Rest::Pauses(time));
                }
                Outcome::Sleep(time) => {
                    // What came before must not be lost with a step that takes its time.
                    if is_kept_early {
                        self.keep_run(turn, flow, run, true, Some(time), stored).await?;
                    }
                    say_all(&scene, &mut effects).await?;
                    tokio::time::sleep(time).await;
                    input = Input::Woken;
                    continue;
                }
                Outcome::Finished(end) => {
                    say_all(&scene, &mut effects).await?;
                    if let End::Failed(error) = end {
                        self.conversation_failed(turn, *number, error);
                    }
                    return Ok(Rest::Ended(run.take_unread().map(Box::new)));
                }
                Outcome::NotMine(message) => return Ok(Rest::Unmoved(Some(Box::new(message)))),
                Outcome::Nothing => return Ok(Rest::Unmoved(None)),
                Outcome::Script(started) => {
                    *script = Some(started);
                    if is_kept_early && !run.is_replaying() {
                        self.keep_run(turn, flow, run, true, None, stored).await?;
                    }
                    None
                }
                Outcome::Answer(answer) => {
                    // The step goes on for as long as it likes; should it be cut, the answer is
                    // there.
                    if is_kept_early && !run.is_replaying() {
                        self.keep_run(turn, flow, run, false, None, stored).await?;
                    }
                    Some(Response::Answered(Box::new(answer)))
                }
                Outcome::Interrupt(ended) => Some(Response::Failed(ended.into())),
                Outcome::Resume => Some(Response::Done),
            };
            say_all(&scene, &mut effects).await?;
            let Some(driven) = script else { return Ok(Rest::Unmoved(None)) };
            if let Some(response) = response {
                driven.supply(response);
            }
            input = match scene.drive(driven, run.is_replaying()).await {
                Pause::Asks(question, again) => Input::Asked(question, again),
                Pause::Rests(time) => Input::Pausing(time),
                Pause::Ended(result) => {
                    *script = None;
                    Input::ScriptFinished(result)
                }
            };
        }
    }
}

/// Whether a send that failed so may succeed later.
fn may_pass(error: &SendError) -> bool {
    matches!(error, SendError::Provider(error) if error.is_transient())
}

async fn say_all(scene: &Scene<'_>, effects: &mut Vec<Effect>) -> Result<(), BotError> {
    for effect in effects.drain(..) {
        let Effect::Say(reply) = effect;
        scene.say(reply).await?;
    }
    Ok(())
}
