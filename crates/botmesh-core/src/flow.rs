//! Flows: conversations as a list of steps over a typed state.
//!
//! A flow is built with [`flow`] and handed to a bot. Steps run from the first to the last;
//! [`label`](Flow::label), [`goto`](Flow::goto) and their like lead elsewhere. A flow that is
//! [`persistent`](Flow::persistent) goes on after a restart of the process, and on other replicas.
//!
//! ```
//! use std::time::Duration;
//! use botmesh_core::{Flow, command, flow, question};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Signup { name: String, age: u8 }
//!
//! fn signup() -> Flow<Signup> {
//!     flow("signup")
//!         .enter_on(command("signup"))
//!         .ask("What is your name?", |s: &mut Signup, answer| { s.name = answer.text()?; Ok(()) })
//!         .ask(
//!             question("How old are you?")
//!                 .retry(3, "A number, please.")
//!                 .timeout(Duration::from_secs(600)),
//!             |s, answer| { s.age = answer.parse()?; Ok(()) },
//!         )
//!         .say(|s| format!("Nice to meet you, {} ({}).", s.name, s.age))
//!         .persistent()
//! }
//! # assert!(signup().compile().problems(&Default::default()).is_empty());
//! ```
//!
//! # What runs how often
//! A step is the unit that is repeated: when a process dies in the middle of a step, the step
//! runs again from its start. So closures should change nothing but the state, and what touches
//! the outside belongs into [`do_`](Flow::do_).

mod call;
mod check;
mod choice;
mod definition;
mod doing;
mod erase;
mod fingerprint;
mod form;
mod machine;
mod plan;
mod problem;
mod run;
mod saved;
mod settings;
mod steps;

#[cfg(test)]
mod tests;

pub use definition::{
    Effect, End, FlowDefinition, Input, Limits, Outcome, Persistence, Shown, Wait,
};
pub use doing::{Doing, DoingKept};
pub use form::{Form, form};
pub use problem::Problem;
pub use run::Run;
pub use saved::{RestoreError, SaveError, SavedFlow};

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::BotError;
use crate::matcher::Matcher;
use machine::Machine;
use plan::{Plan, Step};

/// A flow over the state `S`, under construction.
///
/// Mistakes, such as a jump to a label that does not exist, are told when the bot is built.
pub struct Flow<S> {
    plan: Plan,
    state: PhantomData<fn(S)>,
}

/// Begins a flow whose runs start with the default state. The name is unique within a bot.
pub fn flow<S: Default + Send + 'static>(name: impl Into<Cow<'static, str>>) -> Flow<S> {
    flow_from(name, S::default)
}

/// Begins a flow whose runs start with the state that `initial` makes.
pub fn flow_from<S: Send + 'static>(
    name: impl Into<Cow<'static, str>>,
    initial: impl Fn() -> S + Send + Sync + 'static,
) -> Flow<S> {
    let plan = Plan::new(name.into(), Box::new(move || Box::new(initial())));
    Flow { plan, state: PhantomData }
}

impl<S: Send + 'static> Flow<S> {
    /// Messages that begin the flow; may be called several times.
    #[must_use]
    pub fn enter_on(mut self, matcher: impl Into<Matcher>) -> Self {
        self.plan.triggers.push(matcher.into());
        self
    }

    /// Ends the construction: what the runtime drives. Look at
    /// [`problems`](FlowDefinition::problems) before driving it.
    #[must_use]
    pub fn compile(self) -> Arc<dyn FlowDefinition> {
        Arc::new(self.into_plan())
    }

    fn into_plan(mut self) -> Plan {
        self.plan.fingerprint = fingerprint::of(&self.plan);
        self.plan
    }

    fn step(mut self, step: Step) -> Self {
        self.plan.steps.push(step);
        self
    }
}

impl<S> fmt::Debug for Flow<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.plan, f)
    }
}

impl<S: Send + 'static> From<Flow<S>> for Arc<dyn FlowDefinition> {
    fn from(flow: Flow<S>) -> Self {
        flow.compile()
    }
}

impl FlowDefinition for Plan {
    fn name(&self) -> &str {
        &self.name
    }

    fn triggers(&self) -> &[Matcher] {
        &self.triggers
    }

    fn persistence(&self) -> Persistence {
        self.persistence
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn problems(&self, limits: &Limits) -> Vec<Problem> {
        check::problems(self, limits)
    }

    fn start(&self, run_id: u64) -> Result<Run, BotError> {
        Ok(Run::new(run_id, self.initial_state()?))
    }

    fn advance(
        &self,
        run: &mut Run,
        input: Input,
        shown: &Shown<'_>,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        run.just_asked = false;
        Machine { plan: self, run, shown, effects }.advance(input)
    }

    fn save(&self, run: &Run, max_answer_bytes: usize) -> Result<String, SaveError> {
        saved::save(self, run, max_answer_bytes, false)
    }

    fn save_unasked(&self, run: &Run, max_answer_bytes: usize) -> Result<String, SaveError> {
        saved::save(self, run, max_answer_bytes, run.just_asked)
    }

    fn restore(&self, body: &str) -> Result<Run, RestoreError> {
        saved::restore(self, body)
    }
}
