//! Runs as JSON, and back.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

use super::plan::{Plan, Step};
use super::run::{Frame, Phase, Position, Run};
use crate::error::BotError;
use crate::message::Message;
use crate::question::Answer;

/// Why a run cannot be saved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The flow is neither persistent nor forwardable.
    #[error("the flow {flow:?} lives in memory only: make it persistent or forwardable")]
    InMemory {
        /// The flow, or the sub-flow that it is in.
        flow: String,
    },
    /// The state cannot be written as JSON.
    #[error("the state of the flow {flow:?} cannot be written as JSON: {reason}")]
    State {
        /// The flow.
        flow: String,
        /// What serde says.
        reason: String,
    },
    /// The run has ended, or its state went away with a script that was dropped.
    #[error("the run of the flow {flow:?} has no state to save: it has ended or was cut off")]
    NoState {
        /// The flow.
        flow: String,
    },
}

/// Why a saved run cannot be restored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// It is a run of another flow.
    #[error("the saved run belongs to the flow {saved:?}, not to {flow:?}")]
    OtherFlow {
        /// The flow that was to restore it.
        flow: String,
        /// The flow that saved it.
        saved: String,
    },
    /// The flow has changed since the run was saved.
    #[error("the flow {flow:?} has changed since the run was saved")]
    Changed {
        /// The flow.
        flow: String,
        /// Its fingerprint when the run was saved.
        saved: u64,
        /// Its fingerprint now.
        present: u64,
    },
    /// The flow, or one that it calls, is neither persistent nor forwardable.
    #[error("the flow {flow:?} lives in memory only: make it persistent or forwardable")]
    InMemory {
        /// The flow.
        flow: String,
    },
    /// The state does not read as the flow's state type any more.
    #[error("the saved state of the flow {flow:?} cannot be read: {reason}")]
    State {
        /// The flow.
        flow: String,
        /// What serde says.
        reason: String,
    },
    /// This is no saved run.
    #[error("the saved run cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// The saved run stands where the flow has no such step.
    #[error("the saved run stands at a step that the flow {flow:?} does not have")]
    NoSuchStep {
        /// The flow.
        flow: String,
    },
}

/// Which flow a saved run belongs to, read without knowing the flow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFlow {
    /// The flow's name.
    pub name: String,
    /// The flow's fingerprint when the run was saved.
    pub fingerprint: u64,
    /// The run's id.
    pub run: u64,
}

impl SavedFlow {
    /// Reads it from what [`save`](super::FlowDefinition::save) wrote.
    ///
    /// # Errors
    /// [`RestoreError::Unreadable`].
    pub fn read(body: &str) -> Result<Self, RestoreError> {
        let body: Body<'_> = serde_json::from_str(body).map_err(RestoreError::Unreadable)?;
        Ok(Self { name: body.flow.into_owned(), fingerprint: body.fingerprint.0, run: body.run.0 })
    }
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    flow: Cow<'a, str>,
    fingerprint: Hex,
    run: Hex,
    waits: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    attempts: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    asked: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    idle_said: bool,
    /// The milliseconds of the pause that the run is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<SavedAnswer>,
    #[serde(borrow)]
    frames: Vec<SavedFrame<'a>>,
}

#[derive(Serialize, Deserialize)]
struct SavedFrame<'a> {
    step: usize,
    #[serde(borrow)]
    state: Cow<'a, RawValue>,
}

#[derive(Serialize, Deserialize)]
struct SavedAnswer {
    message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choice: Option<(usize, String)>,
}

/// Numbers that use all 64 bits, which not every reader of JSON takes.
#[derive(Clone, Copy)]
struct Hex(u64);

impl Serialize for Hex {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl SavedAnswer {
    fn of(answer: &Answer) -> Self {
        let value = |index| (index, answer.as_text().unwrap_or_default().to_owned());
        Self { message: answer.message().clone(), choice: answer.choice().map(value) }
    }

    fn into_answer(self) -> Answer {
        match self.choice {
            Some((index, value)) => Answer::chosen(self.message, index, value),
            None => Answer::free(self.message),
        }
    }
}

pub(super) fn save(
    plan: &Plan,
    run: &Run,
    max_answer_bytes: usize,
    unasked: bool,
) -> Result<String, SaveError> {
    if run.phase == Phase::Ended {
        return Err(SaveError::NoState { flow: plan.name.to_string() });
    }
    let mut frames = Vec::with_capacity(run.frames.len());
    for (depth, frame) in run.frames.iter().enumerate() {
        let plan = frame.plan.as_deref().unwrap_or(plan);
        let driving = run.script.as_deref().filter(|_| depth + 1 == run.frames.len());
        let snapshot = driving.and_then(|driving| driving.snapshot.as_ref());
        let state = match (&frame.state, snapshot) {
            (Some(state), _) => save_state(plan, state.as_ref()).map(Cow::Owned)?,
            (None, Some(Ok(snapshot))) => Cow::Borrowed(&**snapshot),
            (None, Some(Err(reason))) => {
                let (flow, reason) = (plan.name.to_string(), reason.clone());
                return Err(SaveError::State { flow, reason });
            }
            (None, None) if plan.codec.is_none() => {
                return Err(SaveError::InMemory { flow: plan.name.to_string() });
            }
            (None, None) => return Err(SaveError::NoState { flow: plan.name.to_string() }),
        };
        frames.push(SavedFrame { step: frame.step, state });
    }
    let answers: Vec<SavedAnswer> = run.position.answers.iter().map(SavedAnswer::of).collect();
    let mut body = Body {
        flow: Cow::Borrowed(&plan.name),
        fingerprint: Hex(plan.fingerprint),
        run: Hex(run.id),
        waits: run.waits.wrapping_sub(u32::from(unasked)),
        attempts: run.attempts,
        asked: if unasked { run.position.asked_before_last() } else { run.position.asked },
        idle_said: run.idle_said,
        paused: match run.phase {
            Phase::Paused(time) => Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            _ => None,
        },
        answers,
        frames,
    };
    drop_long_answers(&mut body, max_answer_bytes);
    serde_json::to_string(&body).map_err(|error| SaveError::State {
        flow: plan.name.to_string(),
        reason: error.to_string(),
    })
}

/// An answer that is too long is not kept, and with it none after it: the step asks again.
fn drop_long_answers(body: &mut Body<'_>, max_answer_bytes: usize) {
    let fits = |answer: &SavedAnswer| {
        serde_json::to_string(answer).is_ok_and(|text| text.len() <= max_answer_bytes)
    };
    let kept = body.answers.iter().take_while(|answer| fits(answer)).count();
    if kept < body.answers.len() {
        body.answers.truncate(kept);
        // Further questions than that of the answer dropped cannot be gone back to.
        body.asked = body.asked.max(u32::try_from(kept).unwrap_or(u32::MAX).saturating_add(2));
    }
}

fn save_state(plan: &Plan, state: &super::erase::StateRef) -> Result<Box<RawValue>, SaveError> {
    let flow = || plan.name.to_string();
    let codec = plan.codec.ok_or_else(|| SaveError::InMemory { flow: flow() })?;
    (codec.save)(state)
        .map_err(|error| SaveError::State { flow: flow(), reason: error.to_string() })
}

pub(super) fn restore(plan: &Plan, body: &str) -> Result<Run, RestoreError> {
    let body: Body<'_> = serde_json::from_str(body).map_err(RestoreError::Unreadable)?;
    let flow = || plan.name.to_string();
    if body.flow != plan.name {
        return Err(RestoreError::OtherFlow { flow: flow(), saved: body.flow.into_owned() });
    }
    if body.fingerprint.0 != plan.fingerprint {
        let (saved, present) = (body.fingerprint.0, plan.fingerprint);
        return Err(RestoreError::Changed { flow: flow(), saved, present });
    }
    let mut frames = Vec::with_capacity(body.frames.len());
    for saved in body.frames {
        let sub = match frames.last() {
            None => None,
            Some(caller) => Some(called(plan, caller)?),
        };
        frames.push(restore_frame(plan, sub, &saved)?);
    }
    if frames.is_empty() {
        return Err(RestoreError::NoSuchStep { flow: flow() });
    }
    let phase = body.paused.map_or(Phase::Ready, |time| Phase::Paused(Duration::from_millis(time)));
    Ok(Run {
        id: body.run.0,
        waits: body.waits,
        attempts: body.attempts,
        idle_said: body.idle_said,
        just_asked: false,
        phase,
        position: Position {
            asked: body.asked,
            answers: body.answers.into_iter().map(SavedAnswer::into_answer).collect(),
        },
        frames,
        question: None,
        kept: None,
        script: None,
    })
}

/// The flow that `caller` has called.
fn called(plan: &Plan, caller: &Frame) -> Result<Arc<Plan>, RestoreError> {
    let plan = caller.plan.as_deref().unwrap_or(plan);
    match plan.steps.get(caller.step) {
        Some(Step::Call { sub, .. }) => Ok(Arc::clone(sub)),
        _ => Err(RestoreError::NoSuchStep { flow: plan.name.to_string() }),
    }
}

fn restore_frame(
    outer: &Plan,
    sub: Option<Arc<Plan>>,
    saved: &SavedFrame<'_>,
) -> Result<Frame, RestoreError> {
    let plan = sub.as_deref().unwrap_or(outer);
    let flow = || plan.name.to_string();
    if saved.step > plan.steps.len() {
        return Err(RestoreError::NoSuchStep { flow: flow() });
    }
    let codec = plan.codec.ok_or_else(|| RestoreError::InMemory { flow: flow() })?;
    let state = (codec.load)(&saved.state).map_err(|error: BotError| RestoreError::State {
        flow: flow(),
        reason: error.to_string(),
    })?;
    Ok(Frame { plan: sub, step: saved.step, state: Some(state) })
}
