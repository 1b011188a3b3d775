//! Moves a run from step to step.

mod script;
mod waiting;

use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use super::definition::{Effect, End, Input, Outcome, Shown};
use super::erase::{State, StateRef};
use super::plan::{Ask, Plan, Prompt, Step, Target};
use super::run::{Frame, Kept, Phase, Position, Run};
use crate::conversation::ConversationEnded;
use crate::error::BotError;
use crate::message::{Content, Message};

/// How many steps a run goes through without waiting before it is taken for endless.
const STEPS_WITHOUT_WAIT: u32 = 10_000;

/// Why a run cannot be moved on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Stuck {
    #[error(
        "the flow {0:?} ran {STEPS_WITHOUT_WAIT} steps without waiting: let its loop ask something or end"
    )]
    Endless(String),
    #[error("the flow {flow:?} jumps to {target:?}, which it does not have: add the label")]
    NoSuchLabel { flow: String, target: String },
    #[error(
        "the state of the flow {0:?} went away with a script that was dropped: restore the run from its checkpoint"
    )]
    StateGone(String),
    #[error(
        "the flow {0:?} waits for an answer to no question: restore the run from its checkpoint"
    )]
    NoQuestion(String),
}

/// One call of `advance`.
pub(super) struct Machine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) run: &'a mut Run,
    pub(super) shown: &'a Shown<'a>,
    pub(super) effects: &'a mut Vec<Effect>,
}

/// The plan of the innermost flow of a run.
pub(super) enum Innermost<'a> {
    Outer(&'a Plan),
    Sub(Arc<Plan>),
}

impl Deref for Innermost<'_> {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        match self {
            Self::Outer(plan) => plan,
            Self::Sub(plan) => plan,
        }
    }
}

impl<'a> Machine<'a> {
    pub(super) fn advance(mut self, input: Input) -> Outcome {
        if self.run.phase == Phase::Ended {
            return match input {
                Input::Message(message) => Outcome::NotMine(message),
                _ => Outcome::Nothing,
            };
        }
        match self.take(input) {
            Ok(outcome) => outcome,
            Err(error) => self.finish(End::Failed(error)),
        }
    }

    fn take(&mut self, input: Input) -> Result<Outcome, BotError> {
        match (input, self.run.phase) {
            (Input::Message(message), phase) => self.take_message(message, phase),
            (Input::Asked(question, again), Phase::Driving) => self.script_asks(question, again),
            (Input::Pausing(time), Phase::Driving) => {
                self.run.phase = Phase::Paused(time);
                Ok(Outcome::ResumeAfter(time))
            }
            (Input::ScriptFinished(result), Phase::Driving) => self.script_finished(result),
            (Input::Enter | Input::Woken, Phase::Ready) => self.go_on(),
            (Input::Enter, Phase::Waiting) => self.wait(false),
            (Input::Enter, Phase::Paused(time)) => Ok(Outcome::ResumeAfter(time)),
            (Input::TimedOut, Phase::Waiting) => self.timed_out(),
            (Input::Idle, Phase::Waiting) => self.idle(),
            (Input::TimedOut, Phase::Ready) => self.go_on_with(Kept::TimedOut),
            (Input::Idle, Phase::Ready) => self.go_on_with(Kept::Idle),
            (Input::Woken, Phase::Sleeping) => {
                self.next_step();
                self.go_on()
            }
            (Input::Woken, Phase::Paused(_)) => self.unpause(),
            _ => Ok(Outcome::Nothing),
        }
    }

    fn take_message(&mut self, message: Message, phase: Phase) -> Result<Outcome, BotError> {
        // What merely happened, such as a read receipt, answers nothing.
        if matches!(message.content, Content::Event(_) | Content::Reaction(_)) {
            return Ok(Outcome::NotMine(message));
        }
        match phase {
            Phase::Waiting => self.read(message),
            // The wait in which this was said cannot be gone back to.
            Phase::Ready
                if !(self.run.position.is_open() && self.run.position.is_repeatable())
                    && self.is_cancel(&message) =>
            {
                Ok(self.cancelled())
            }
            Phase::Ready => self.go_on_with(Kept::Message(Box::new(message))),
            Phase::Paused(_) if self.is_cancel(&message) => {
                if self.run.script.is_some() {
                    self.run.phase = Phase::Driving;
                    return Ok(Outcome::Interrupt(ConversationEnded::Cancelled));
                }
                Ok(self.cancelled())
            }
            _ => Ok(Outcome::NotMine(message)),
        }
    }

    /// Goes on after a restore because of `kept`.
    fn go_on_with(&mut self, kept: Kept) -> Result<Outcome, BotError> {
        let position = &self.run.position;
        match kept {
            // The run had been woken by the time of a wait which cannot be brought back.
            Kept::TimedOut if !position.is_repeatable() => {
                return self.ended_early(ConversationEnded::TimedOut);
            }
            // An answer to a question that is not asked again would answer another one.
            _ if !position.is_repeatable() => {}
            // Nobody is asked, so nobody can be late.
            Kept::TimedOut | Kept::Idle if !position.is_open() => {}
            kept => self.run.kept = Some(kept),
        }
        self.go_on()
    }

    fn unpause(&mut self) -> Result<Outcome, BotError> {
        if self.run.script.is_some() {
            self.run.phase = Phase::Driving;
            return Ok(Outcome::Resume);
        }
        // After a restore the script is gone: its step begins again.
        let in_script =
            matches!(self.innermost().steps.get(self.frame().step), Some(Step::Script(_)));
        if !in_script {
            self.next_step();
        }
        self.go_on()
    }

    /// Runs steps until the run has to wait for something.
    pub(super) fn go_on(&mut self) -> Result<Outcome, BotError> {
        self.run.phase = Phase::Ready;
        let said_before = self.effects.len();
        for _ in 0..STEPS_WITHOUT_WAIT {
            if let Some(outcome) = self.step()? {
                return Ok(outcome);
            }
        }
        // Nobody wants to hear thousands of times what the loop says.
        self.effects.truncate(said_before);
        Err(Stuck::Endless(self.innermost().name.to_string()).into())
    }

    fn step(&mut self) -> Result<Option<Outcome>, BotError> {
        let index = self.frame().step;
        let plan = self.innermost();
        let Some(step) = plan.steps.get(index) else { return self.leave() };
        match step {
            Step::Say(say) => {
                let reply = say(self.state()?)?;
                self.effects.push(Effect::Say(reply));
                self.next_step();
            }
            Step::Ask(ask) => return self.ask(ask).map(Some),
            Step::Script(lend) => return self.start_script(lend).map(Some),
            Step::Branch { test, when, to } => {
                if test(self.state()?)? == *when {
                    return self.jump(&plan, to);
                }
                self.next_step();
            }
            Step::Jump(to) => return self.jump(&plan, to),
            Step::Call { sub: callee, enter, .. } => {
                let state = enter(self.state()?)?;
                let plan = Some(Arc::clone(callee));
                self.run.frames.push(Frame { plan, step: 0, state: Some(state) });
                self.run.position = Position::default();
            }
            Step::Sleep(time) => {
                self.run.phase = Phase::Sleeping;
                return Ok(Some(Outcome::Sleep(*time)));
            }
            Step::ResumeAfter(time) => {
                self.run.phase = Phase::Paused(*time);
                return Ok(Some(Outcome::ResumeAfter(*time)));
            }
            Step::End(last) => {
                if let Some(say) = last {
                    let reply = say(self.state()?)?;
                    self.effects.push(Effect::Say(reply));
                }
                self.move_to(plan.steps.len());
            }
        }
        Ok(None)
    }

    fn ask(&mut self, ask: &Ask) -> Result<Outcome, BotError> {
        let question = match &ask.prompt {
            Prompt::Fixed(question) => Arc::clone(question),
            Prompt::Computed(prompt) => Arc::new(prompt(self.state()?)?),
        };
        let asked_before = self.run.position.asked > 0;
        if !asked_before {
            self.say_question(&question);
            self.run.attempts = 0;
            self.run.position.asked = 1;
        }
        self.run.question = Some(question);
        self.wait(!asked_before)
    }

    /// Goes where `to` leads in the innermost flow.
    pub(super) fn jump(&mut self, plan: &Plan, to: &Target) -> Result<Option<Outcome>, BotError> {
        let step = match to {
            Target::Step(step) => *step,
            Target::Next => self.frame().step + 1,
            Target::Cancel => return Ok(Some(self.cancelled())),
            Target::Label(label) => plan.step_of(label).ok_or_else(|| Stuck::NoSuchLabel {
                flow: plan.name.to_string(),
                target: label.to_string(),
            })?,
        };
        self.move_to(step);
        Ok(None)
    }

    /// Leaves the innermost flow, which has come to its end.
    fn leave(&mut self) -> Result<Option<Outcome>, BotError> {
        if self.run.frames.len() == 1 {
            return Ok(Some(self.finish(End::Done)));
        }
        let Some(Frame { state: Some(returned), .. }) = self.run.frames.pop() else {
            return Err(self.state_gone());
        };
        let index = self.frame().step;
        let plan = self.innermost();
        if let Some(Step::Call { leave, .. }) = plan.steps.get(index) {
            leave(self.state_mut()?, returned)?;
        }
        self.next_step();
        Ok(None)
    }

    pub(super) fn finish(&mut self, end: End) -> Outcome {
        self.run.phase = Phase::Ended;
        self.run.question = None;
        self.run.script = None;
        Outcome::Finished(end)
    }

    pub(super) fn next_step(&mut self) {
        self.move_to(self.frame().step + 1);
    }

    pub(super) fn move_to(&mut self, step: usize) {
        self.frame_mut().step = step;
        self.run.position = Position::default();
        self.run.attempts = 0;
        self.run.idle_said = false;
        self.run.question = None;
    }

    pub(super) fn innermost(&self) -> Innermost<'a> {
        match &self.frame().plan {
            None => Innermost::Outer(self.plan),
            Some(plan) => Innermost::Sub(Arc::clone(plan)),
        }
    }

    /// The settings of the flows that the run is in, the innermost first, with their depth.
    pub(super) fn plans(&self) -> impl Iterator<Item = (usize, &Plan)> {
        let frames = self.run.frames.iter().enumerate().rev();
        frames.map(|(depth, frame)| (depth, frame.plan.as_deref().unwrap_or(self.plan)))
    }

    pub(super) fn frame(&self) -> &Frame {
        // A run has a frame from its beginning, and the outermost one is never taken off.
        &self.run.frames[self.run.frames.len() - 1]
    }

    pub(super) fn frame_mut(&mut self) -> &mut Frame {
        let innermost = self.run.frames.len() - 1;
        &mut self.run.frames[innermost]
    }

    pub(super) fn state(&self) -> Result<&StateRef, BotError> {
        self.frame().state.as_deref().ok_or_else(|| self.state_gone())
    }

    pub(super) fn state_mut(&mut self) -> Result<&mut StateRef, BotError> {
        if self.frame().state.is_none() {
            return Err(self.state_gone());
        }
        self.frame_mut().state.as_deref_mut().ok_or_else(|| Stuck::StateGone(String::new()).into())
    }

    pub(super) fn take_state(&mut self) -> Result<State, BotError> {
        match self.frame_mut().state.take() {
            Some(state) => Ok(state),
            None => Err(self.state_gone()),
        }
    }

    fn state_gone(&self) -> BotError {
        Stuck::StateGone(self.plan.name.to_string()).into()
    }
}
