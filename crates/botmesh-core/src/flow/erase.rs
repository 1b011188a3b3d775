//! User closures over a flow's own state, made uniform: each is guarded against panics and takes
//! the state as `Any`, so that the machine behind is compiled once and not for each flow.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::conversation::{Panicked, Script};
use crate::error::BotError;
use crate::message::Reply;
use crate::question::{Answer, Invalid, Question};

pub(super) type State = Box<dyn Any + Send>;
pub(super) type StateRef = dyn Any + Send;

pub(super) type InitFn = Box<dyn Fn() -> State + Send + Sync>;
pub(super) type SayFn = Box<dyn Fn(&StateRef) -> Result<Reply, BotError> + Send + Sync>;
pub(super) type TestFn = Box<dyn Fn(&StateRef) -> Result<bool, BotError> + Send + Sync>;
pub(super) type PromptFn = Box<dyn Fn(&StateRef) -> Result<Question, BotError> + Send + Sync>;
pub(super) type TakeFn =
    Box<dyn Fn(&mut StateRef, Answer) -> Result<Result<(), Invalid>, BotError> + Send + Sync>;
pub(super) type EnterFn = Box<dyn Fn(&StateRef) -> Result<State, BotError> + Send + Sync>;
pub(super) type LeaveFn = Box<dyn Fn(&mut StateRef, State) -> Result<(), BotError> + Send + Sync>;
pub(super) type LendFn = Box<dyn Fn(State) -> Result<(Script, ReturnFn), BotError> + Send + Sync>;
/// Takes the state back from a script that has ended.
pub(super) type ReturnFn = Box<dyn FnOnce() -> Result<State, BotError> + Send>;

/// The run was started by another flow than the one that moves it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the run belongs to another flow: move it on with the flow that started it")]
pub(super) struct ForeignState;

/// How the state of a flow is written and read; present where the flow may leave the process.
#[derive(Clone, Copy)]
pub(super) struct Codec {
    pub(super) save: fn(&StateRef) -> Result<Box<RawValue>, BotError>,
    pub(super) load: fn(&RawValue) -> Result<State, BotError>,
}

impl Codec {
    pub(super) fn of<S: Serialize + DeserializeOwned + Send + 'static>() -> Self {
        Self { save: save::<S>, load: load::<S> }
    }
}

fn save<S: Serialize + 'static>(state: &StateRef) -> Result<Box<RawValue>, BotError> {
    Ok(read(state, |state: &S| serde_json::value::to_raw_value(state))??)
}

fn load<S: DeserializeOwned + Send + 'static>(saved: &RawValue) -> Result<State, BotError> {
    Ok(Box::new(guard(|| serde_json::from_str::<S>(saved.get()))??))
}

/// Runs user code; a panic in it is an error.
pub(super) fn guard<R>(code: impl FnOnce() -> R) -> Result<R, BotError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| Panicked::new(payload.as_ref()).into())
}

/// Lets user code see the state.
pub(super) fn read<S: 'static, R>(
    state: &StateRef,
    code: impl FnOnce(&S) -> R,
) -> Result<R, BotError> {
    let state = state.downcast_ref::<S>().ok_or(ForeignState)?;
    guard(|| code(state))
}

/// Lets user code change the state.
pub(super) fn change<S: 'static, R>(
    state: &mut StateRef,
    code: impl FnOnce(&mut S) -> R,
) -> Result<R, BotError> {
    let state = state.downcast_mut::<S>().ok_or(ForeignState)?;
    guard(|| code(state))
}

/// Takes the state out of its box.
pub(super) fn own<S: 'static>(state: State) -> Result<S, BotError> {
    match state.downcast::<S>() {
        Ok(state) => Ok(*state),
        Err(_) => Err(ForeignState.into()),
    }
}
