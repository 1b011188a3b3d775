use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::erase::{ReturnFn, State};
use super::plan::Plan;
use crate::message::Message;
use crate::question::{Answer, Question, WaitToken};

/// How many answers of one `do_` step are kept so that it can be gone through again.
pub(super) const HELD_ANSWERS: usize = 1;

/// One conversation in a flow: where it stands and its state.
///
/// It is moved on by the [`FlowDefinition`](super::FlowDefinition) that started or restored it.
/// While a `do_` step is under way the state is with the step's script. When that script is
/// dropped before it has ended, the run cannot go on from memory: restore what was saved last.
pub struct Run {
    pub(super) id: u64,
    pub(super) waits: u32,
    pub(super) attempts: u32,
    pub(super) idle_said: bool,
    /// Whether its present question was asked by the last `advance`.
    pub(super) just_asked: bool,
    pub(super) phase: Phase,
    pub(super) position: Position,
    /// The outermost flow first; at least one.
    pub(super) frames: Vec<Frame>,
    pub(super) question: Option<Arc<Question>>,
    pub(super) kept: Option<Kept>,
    pub(super) script: Option<Box<Driving>>,
}

/// One flow in a chain of calls.
pub(super) struct Frame {
    /// None for the outermost: that is the definition itself.
    pub(super) plan: Option<Arc<Plan>>,
    pub(super) step: usize,
    /// None while a script has it.
    pub(super) state: Option<State>,
}

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// About to run its step: new, or restored.
    Ready,
    /// Waiting for an answer.
    Waiting,
    /// The script of its step is being driven.
    Driving,
    /// Waiting for a wake-up, with the chat held.
    Sleeping,
    /// Waiting for a wake-up, with the chat free.
    Paused(Duration),
    Ended,
}

/// How far the innermost step has come, as far as that can be restored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Position {
    /// How many questions the step has asked.
    pub(super) asked: u32,
    /// Its first answers, at most [`HELD_ANSWERS`], where they are worth keeping.
    pub(super) answers: Vec<Answer>,
}

impl Position {
    /// How many questions count as asked while the last one is about to be: one less, unless an
    /// answer before it was not kept, so that the step has to begin again.
    pub(super) fn asked_before_last(&self) -> u32 {
        let before = self.asked.saturating_sub(1);
        if before as usize <= self.answers.len() { before } else { self.asked }
    }

    /// Whether the step can be brought back to its present wait.
    pub(super) fn is_repeatable(&self) -> bool {
        self.asked as usize <= self.answers.len() + 1
    }

    /// Whether the last question that was asked has no answer yet.
    pub(super) fn is_open(&self) -> bool {
        self.asked as usize > self.answers.len()
    }
}

/// What woke a restored run and is dealt with once the run waits.
#[derive(Debug)]
pub(super) enum Kept {
    Message(Box<Message>),
    TimedOut,
    Idle,
}

/// The script of a `do_` step.
pub(super) struct Driving {
    pub(super) take_back: ReturnFn,
    /// The state at the step's start, where the flow may leave the process.
    pub(super) snapshot: Option<Result<Box<RawValue>, String>>,
    /// How many questions it has asked since it was started in this process.
    pub(super) asked: u32,
    /// The step has asked these before; they are not said again.
    pub(super) asked_before: u32,
}

impl Run {
    pub(super) fn new(id: u64, state: State) -> Self {
        let frames = vec![Frame { plan: None, step: 0, state: Some(state) }];
        Self {
            id,
            waits: 0,
            attempts: 0,
            idle_said: false,
            just_asked: false,
            phase: Phase::Ready,
            position: Position::default(),
            frames,
            question: None,
            kept: None,
            script: None,
        }
    }

    /// Its random id.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Marks the buttons of its present wait.
    #[must_use]
    pub const fn token(&self) -> WaitToken {
        WaitToken::new(self.id, self.waits)
    }

    /// Whether it waits for an answer.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Waiting)
    }

    /// Whether it stands still without holding the chat.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused(_))
    }

    /// Whether it has ended.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Whether the script being driven goes once more through what another process has done
    /// before: what it says now was said already and need not be said again.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.asked < script.asked_before)
    }

    /// Takes out a message that woke the run and was not read before the run ended; it is to be
    /// handled like any other message.
    #[must_use]
    pub fn take_unread(&mut self) -> Option<Message> {
        match self.kept.take() {
            Some(Kept::Message(message)) => Some(*message),
            _ => None,
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<usize> = self.frames.iter().map(|frame| frame.step).collect();
        f.debug_struct("Run")
            .field("id", &format_args!("{:x}", self.id))
            .field("steps", &steps)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
