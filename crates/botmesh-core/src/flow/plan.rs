//! A flow without its state type: the steps, where they lead, and the settings.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::erase::{
    Codec, EnterFn, InitFn, LeaveFn, LendFn, PromptFn, SayFn, State, TakeFn, TestFn, guard,
};
use super::{Persistence, Problem};
use crate::error::BotError;
use crate::matcher::Matcher;
use crate::message::Reply;
use crate::question::Question;

pub(super) type Name = Cow<'static, str>;

/// All that a flow was built from.
pub(super) struct Plan {
    pub(super) name: Name,
    pub(super) triggers: Vec<Matcher>,
    pub(super) init: InitFn,
    pub(super) steps: Vec<Step>,
    /// Each label and the step before which it stands.
    pub(super) labels: Vec<(Name, usize)>,
    pub(super) settings: Settings,
    pub(super) version: u32,
    pub(super) codec: Option<Codec>,
    pub(super) persistence: Persistence,
    /// Mistakes that were made while building.
    pub(super) mistakes: Vec<Problem>,
    pub(super) fingerprint: u64,
}

#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) timeout: Option<Duration>,
    pub(super) on_timeout: Option<Target>,
    pub(super) on_failure: Option<Target>,
    pub(super) idle: Option<(Duration, Reply)>,
    /// Folded as matchers fold texts.
    pub(super) cancel_words: Vec<Box<str>>,
    /// Whether the localized words cancel, too.
    pub(super) cancellable: bool,
}

pub(super) enum Step {
    Say(SayFn),
    Ask(Ask),
    Script(LendFn),
    Branch {
        test: TestFn,
        /// Jumps when the test comes out like this.
        when: bool,
        to: Target,
    },
    Jump(Target),
    Call {
        sub: Arc<Plan>,
        enter: EnterFn,
        leave: LeaveFn,
    },
    Sleep(Duration),
    ResumeAfter(Duration),
    End(Option<SayFn>),
}

pub(super) struct Ask {
    /// The name of a form's field.
    pub(super) field: Option<Name>,
    pub(super) prompt: Prompt,
    pub(super) then: Then,
}

pub(super) enum Prompt {
    Fixed(Arc<Question>),
    Computed(PromptFn),
}

pub(super) enum Then {
    /// The answer is handed to user code.
    Take(TakeFn),
    /// Each option leads somewhere.
    Go(Vec<Target>),
}

/// Where a jump leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Label(Name),
    Step(usize),
    Next,
    /// As if the user had said a cancel word.
    Cancel,
}

impl Plan {
    pub(super) fn new(name: Name, init: InitFn) -> Self {
        Self {
            name,
            triggers: Vec::new(),
            init,
            steps: Vec::new(),
            labels: Vec::new(),
            settings: Settings::default(),
            version: 0,
            codec: None,
            persistence: Persistence::Memory,
            mistakes: Vec::new(),
            fingerprint: 0,
        }
    }

    pub(super) fn initial_state(&self) -> Result<State, BotError> {
        guard(|| (self.init)())
    }

    /// The step before which the label stands; the first one if there are several.
    pub(super) fn step_of(&self, label: &str) -> Option<usize> {
        self.labels.iter().find(|(name, _)| name == label).map(|(_, step)| *step)
    }

    /// Everything that jumps, with the step that does; none for the settings.
    pub(super) fn jumps(&self) -> impl Iterator<Item = (Option<usize>, &Target)> {
        let settings = [&self.settings.on_timeout, &self.settings.on_failure];
        let by_settings = settings.into_iter().flatten().map(|target| (None, target));
        let by_steps = self.steps.iter().enumerate().flat_map(|(index, step)| {
            let targets = match step {
                Step::Branch { to, .. } | Step::Jump(to) => std::slice::from_ref(to),
                Step::Ask(Ask { then: Then::Go(targets), .. }) => targets,
                _ => &[],
            };
            targets.iter().map(move |target| (Some(index), target))
        });
        by_settings.chain(by_steps)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("name", &self.name)
            .field("steps", &self.steps.len())
            .field("persistence", &self.persistence)
            .finish_non_exhaustive()
    }
}
