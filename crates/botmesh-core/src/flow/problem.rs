use std::time::Duration;

use thiserror::Error;

use crate::id::IdError;
use crate::matcher::MatcherProblem;

/// What is wrong with a flow; told when the bot is built.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The name cannot be used.
    #[error("the flow {flow:?} cannot have this name")]
    Name {
        /// The flow.
        flow: String,
        /// What is wrong with the name.
        #[source]
        source: IdError,
    },
    /// It does nothing.
    #[error("the flow {flow:?} has no steps: add what it says or asks")]
    Empty {
        /// The flow.
        flow: String,
    },
    /// A message that is to enter it cannot be matched.
    #[error("the flow {flow:?} cannot be entered as it says")]
    Trigger {
        /// The flow.
        flow: String,
        /// What is wrong with the matcher.
        #[source]
        source: MatcherProblem,
    },
    /// Two places have one label.
    #[error("the flow {flow:?} has the label {label:?} twice: rename one")]
    DuplicateLabel {
        /// The flow.
        flow: String,
        /// The label.
        label: String,
    },
    /// Two fields of the flow's forms have one name.
    #[error("the flow {flow:?} has the form field {field:?} twice: rename one")]
    DuplicateField {
        /// The flow.
        flow: String,
        /// The field.
        field: String,
    },
    /// A jump to a label that does not exist.
    #[error(
        "the flow {flow:?} leads to the label {label:?}, which it does not have: add it or correct the name"
    )]
    UnknownLabel {
        /// The flow.
        flow: String,
        /// The label.
        label: String,
    },
    /// No way leads to a step.
    #[error(
        "step {step} of the flow {flow:?} is never reached: lead to it by a label, or remove it"
    )]
    Unreachable {
        /// The flow.
        flow: String,
        /// Its number, from 1; each field of a form counts.
        step: usize,
    },
    /// A loop that never waits.
    #[error(
        "the flow {flow:?} goes round for ever from step {step}: let the loop ask, pause or do something"
    )]
    EndlessLoop {
        /// The flow.
        flow: String,
        /// The number of one of its steps, from 1.
        step: usize,
    },
    /// A setting that only matters while the flow waits, and it never does.
    #[error("the flow {flow:?} never waits, so its {setting} has no effect: remove it")]
    NeverWaits {
        /// The flow.
        flow: String,
        /// The method that set it.
        setting: &'static str,
    },
    /// A way out for waits that last too long, but they last for ever.
    #[error(
        "no wait of the flow {flow:?} has a timeout, so on_timeout has no effect: add .timeout(...)"
    )]
    NeverTimesOut {
        /// The flow.
        flow: String,
    },
    /// A way out for too many wrong answers, but they may be wrong for ever.
    #[error(
        "no question of the flow {flow:?} has a limit, so on_failure has no effect: add .retry(...)"
    )]
    NeverFails {
        /// The flow.
        flow: String,
    },
    /// The silence after which the flow speaks up is longer than it waits.
    #[error(
        "the flow {flow:?} times out after {timeout:?}, before its idle of {idle:?}: make idle shorter"
    )]
    IdleAfterTimeout {
        /// The flow.
        flow: String,
        /// The silence.
        idle: Duration,
        /// The flow's timeout.
        timeout: Duration,
    },
    /// A wait of no length.
    #[error("the flow {flow:?} has a {setting} of no length: give it some time")]
    NoTime {
        /// The flow.
        flow: String,
        /// The method that set it.
        setting: &'static str,
    },
    /// A pause holds the chat longer than a step may.
    #[error(
        "the flow {flow:?} sleeps {sleep:?}, but a step may hold a chat for {settle:?} at most: use resume_after, or raise settle"
    )]
    SleepTooLong {
        /// The flow.
        flow: String,
        /// The pause.
        sleep: Duration,
        /// The limit.
        settle: Duration,
    },
    /// A question that no answer satisfies.
    #[error(
        "step {step} of the flow {flow:?} takes only offered answers but offers none: offer some"
    )]
    NothingOffered {
        /// The flow.
        flow: String,
        /// Its number, from 1.
        step: usize,
    },
    /// A question that may be asked no time at all.
    #[error("step {step} of the flow {flow:?} may be asked 0 times: allow at least one attempt")]
    NoAttempts {
        /// The flow.
        flow: String,
        /// Its number, from 1.
        step: usize,
    },
    /// Two offered answers mean the same.
    #[error("step {step} of the flow {flow:?} offers {value:?} twice: remove or rename one")]
    DuplicateOption {
        /// The flow.
        flow: String,
        /// Its number, from 1.
        step: usize,
        /// What the options stand for.
        value: String,
    },
    /// The flow may leave the process but a flow that it calls may not.
    #[error(
        "the flow {flow:?} calls {sub:?}, which lives in memory only: make that .persistent() or .forwardable() too"
    )]
    SubFlowInMemory {
        /// The flow.
        flow: String,
        /// The flow that it calls.
        sub: String,
    },
    /// The steps given to `when` were added to another flow.
    #[error(
        "a .when(...) of the flow {flow:?} returns another flow than it was given: add the steps to its argument"
    )]
    StrayedWhen {
        /// The flow.
        flow: String,
    },
}

impl Problem {
    /// Whether the bot can run in spite of it: something has no effect, but nothing goes wrong.
    #[must_use]
    pub const fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::NeverWaits { .. }
                | Self::NeverTimesOut { .. }
                | Self::NeverFails { .. }
                | Self::IdleAfterTimeout { .. }
        )
    }
}
