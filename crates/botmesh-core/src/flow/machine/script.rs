//! The `do_` step: an asynchronous function that the runtime drives.

use std::sync::Arc;

use super::Machine;
use crate::conversation::ConversationEnded;
use crate::error::BotError;
use crate::flow::Persistence;
use crate::flow::definition::{End, Outcome};
use crate::flow::erase::LendFn;
use crate::flow::run::{Driving, HELD_ANSWERS, Phase, Position};
use crate::question::{Answer, Question};
use crate::text::Text;

impl Machine<'_> {
    pub(super) fn start_script(&mut self, lend: &LendFn) -> Result<Outcome, BotError> {
        if !self.run.position.is_repeatable() {
            self.run.position = Position::default();
        }
        let state = self.take_state()?;
        let codec = self.innermost().codec.filter(|_| self.leaves_process());
        let snapshot = codec.map(|codec| (codec.save)(&*state).map_err(|error| error.to_string()));
        let (script, take_back) = lend(state)?;
        let asked_before = self.run.position.asked;
        self.run.script = Some(Box::new(Driving { take_back, snapshot, asked: 0, asked_before }));
        self.run.phase = Phase::Driving;
        Ok(Outcome::Script(script))
    }

    pub(super) fn script_asks(
        &mut self,
        question: Arc<Question>,
        again: Option<Text>,
    ) -> Result<Outcome, BotError> {
        let Some(script) = &mut self.run.script else { return Ok(Outcome::Nothing) };
        let mut known = false;
        if let Some(why) = again {
            // The answer that was just held has been refused.
            self.run.position.answers.truncate(script.asked.saturating_sub(1) as usize);
            // Counted here too, because the function's own count does not survive a restart.
            self.run.attempts = self.run.attempts.saturating_add(1);
            if question.attempts().is_some_and(|most| self.run.attempts >= most) {
                return Ok(Outcome::Interrupt(ConversationEnded::TooManyAttempts));
            }
            self.say_again(&question, why);
        } else {
            let asked = script.asked;
            script.asked = asked.saturating_add(1);
            known = asked < script.asked_before;
            if let Some(answer) =
                self.run.position.answers.get(asked as usize).filter(|_| known).cloned()
            {
                return Ok(Outcome::Answer(answer));
            }
            if !known {
                self.say_question(&question);
                self.run.position.asked = asked.saturating_add(1);
                self.run.attempts = 0;
            }
        }
        self.run.idle_said &= known;
        self.run.question = Some(question);
        self.wait(!known)
    }

    pub(super) fn script_answered(&mut self, answer: Answer) -> Outcome {
        let answers = &mut self.run.position.answers;
        let is_next = answers.len() + 1 == self.run.position.asked as usize;
        if is_next && answers.len() < HELD_ANSWERS && self.leaves_process() {
            self.run.position.answers.push(answer.clone());
        }
        self.run.phase = Phase::Driving;
        Outcome::Answer(answer)
    }

    pub(super) fn script_finished(
        &mut self,
        result: Result<(), BotError>,
    ) -> Result<Outcome, BotError> {
        let Some(script) = self.run.script.take() else { return Ok(Outcome::Nothing) };
        let state = (script.take_back)();
        match result {
            Ok(()) => {
                self.frame_mut().state = Some(state?);
                self.next_step();
                self.go_on()
            }
            Err(error) => match error.downcast_ref::<ConversationEnded>() {
                Some(why) => {
                    let why = *why;
                    self.frame_mut().state = Some(state?);
                    self.ended_early(why)
                }
                None => Ok(self.finish(End::Failed(error))),
            },
        }
    }

    /// Whether what the run keeps may be needed by another process.
    fn leaves_process(&self) -> bool {
        self.plan.persistence != Persistence::Memory
    }
}
