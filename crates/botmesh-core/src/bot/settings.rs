use std::sync::Arc;
use std::time::Duration;

use super::coordination::Coordination;
use super::problem::Problem;
use crate::conversation::Conversation;
use crate::error::BotError;
use crate::flow::{FlowDefinition, Limits, Problem as FlowProblem};
use crate::id::ConversationName;
use crate::provider::Provider;
use crate::runtime::{ConversingSettings, Definition, LaneLimits, Route, Router};

/// The settings of a bot.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) conversation_timeout: Option<Duration>,
    pub(super) cancellable: bool,
    pub(super) max_in_work: usize,
    pub(super) max_waiting_per_chat: usize,
    pub(super) remembered_ids: usize,
    pub(super) stop_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            conversation_timeout: None,
            cancellable: false,
            max_in_work: 10_000,
            max_waiting_per_chat: 1_000,
            remembered_ids: 100_000,
            stop_timeout: Duration::from_secs(30),
        }
    }
}

impl Settings {
    pub(super) const fn limits(&self) -> LaneLimits {
        LaneLimits {
            in_work: self.max_in_work,
            per_chat: self.max_waiting_per_chat,
            remembered_ids: self.remembered_ids,
        }
    }

    /// What flows are checked against.
    pub(super) fn flow_limits(&self, coordination: Option<&Coordination>) -> Limits {
        let limits = coordination
            .map_or_else(Limits::default, |it| Limits::default().settle(it.settle_limit()));
        limits.timeout(self.conversation_timeout)
    }

    pub(super) const fn conversing(&self) -> ConversingSettings {
        ConversingSettings { timeout: self.conversation_timeout, cancellable: self.cancellable }
    }

    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.max_in_work == 0 {
            problems
                .push(Problem::error("Bot::max_in_work", "0 lets no message in: allow at least 1"));
        }
        if self.max_waiting_per_chat > self.max_in_work {
            problems.push(Problem::warning(
                "Bot::max_waiting_per_chat",
                "one chat can fill the whole bot: keep it well below `max_in_work`",
            ));
        }
        if self.conversation_timeout == Some(Duration::ZERO) {
            problems.push(Problem::error(
                "Bot::conversation_timeout",
                "0 leaves no time to answer: give a duration, or leave it out to wait for ever",
            ));
        }
        problems
    }
}

/// What ids begin with under which botmesh keeps things of its own among those of chats.
const RESERVED: &str = "botmesh.";

pub(super) fn provider_problems(providers: &[Arc<dyn Provider>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, provider) in providers.iter().enumerate() {
        if provider.id().as_str().starts_with(RESERVED) {
            problems.push(Problem::error(
                "Bot::provider",
                format!(
                    "the id {:?} is botmesh's own: choose one that does not begin with {RESERVED:?}",
                    provider.id().as_str()
                ),
            ));
        }
        if providers[..index].iter().any(|earlier| earlier.id() == provider.id()) {
            problems.push(Problem::error(
                "Bot::provider",
                format!(
                    "two providers have the id {:?}: give each its own, as it is part of every chat key",
                    provider.id().as_str()
                ),
            ));
        }
    }
    problems
}

pub(super) fn route_problems(router: &Router, providers: &[Arc<dyn Provider>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for Route { matcher, .. } in &router.routes {
        let setting = format!("Bot::when({matcher})");
        problems.extend(
            matcher
                .problems()
                .into_iter()
                .map(|problem| Problem::error(&*setting, chain(&problem))),
        );
        if let Some(only) = matcher.provider()
            && !providers.iter().any(|provider| provider.id().as_str() == only)
        {
            problems.push(Problem::warning(
                setting,
                format!("the bot has no provider {only:?}, so this never matches: add it, or drop `only_on`"),
            ));
        }
    }
    problems
}

/// A flow or a conversation that was added and not checked yet.
pub(super) enum PendingConversation {
    Function {
        name: &'static str,
        define: Box<dyn FnOnce(ConversationName) -> Definition + Send + Sync>,
    },
    Flow(Arc<dyn FlowDefinition>),
}

impl PendingConversation {
    pub(super) fn function<F, R, T>(name: &'static str, function: F) -> Self
    where
        F: Fn(Conversation) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        let define = Box::new(move |name| Definition::function(name, function));
        Self::Function { name, define }
    }

    /// Makes it a definition of the bot, or says what is wrong with it.
    pub(super) fn define(self, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Definition> {
        let (setting, name) = match &self {
            Self::Function { name, .. } => (format!("Bot::conversation({name:?})"), *name),
            Self::Flow(flow) => (format!("Bot::flow({:?})", flow.name()), flow.name()),
        };
        let name = match ConversationName::new(name) {
            Ok(name) => name,
            Err(error) => {
                problems.push(Problem::error(setting, error.to_string()));
                return None;
            }
        };
        Some(match self {
            Self::Function { define, .. } => define(name),
            Self::Flow(flow) => {
                let wrong = flow.problems(limits);
                let told = |problem: FlowProblem| match problem.is_warning() {
                    true => Problem::warning(&*setting, chain(&problem)),
                    false => Problem::error(&*setting, chain(&problem)),
                };
                problems.extend(wrong.into_iter().map(told));
                Definition::Flow { name, flow }
            }
        })
    }
}

/// An error with its sources, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub(super) fn name_problems(definitions: &[Definition]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        let name = definition.name();
        if definitions[..index].iter().any(|earlier| earlier.name() == name) {
            problems.push(Problem::error(
                format!("Bot::flow or Bot::conversation({:?})", name.as_str()),
                "another flow or conversation has this name: give each its own",
            ));
        }
    }
    problems
}
