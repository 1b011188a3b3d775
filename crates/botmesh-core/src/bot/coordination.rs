use std::sync::Arc;
use std::time::Duration;

use super::problem::Problem;
use crate::coordination::Coordinator;
use crate::runtime::{BrokenRule, CoordinationSettings, Handover, ProviderSession};
use crate::store::Store;

/// Several replicas of one bot, kept from meeting in a chat by a coordinator.
///
/// ```
/// use std::time::Duration;
/// use botmesh_core::bot::{Coordination, Fallback, Handover};
/// # use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator};
/// # let hub = MemoryCoordinationHub::new();
/// # let coordinator = MemoryCoordinator::builder(&hub).build();
/// let coordination = Coordination::new(coordinator)
///     .turn_wait(Duration::from_secs(60))
///     .settle(Duration::from_secs(30))
///     .handover(Handover::forward().fallback(Fallback::Notify));
/// ```
#[must_use = "give it to `Bot::coordination`"]
#[derive(Debug)]
pub struct Coordination {
    coordinator: Arc<dyn Coordinator>,
    settings: CoordinationSettings,
}

impl Coordination {
    /// Coordinates the replicas through `coordinator`, of which each replica has its own.
    pub fn new(coordinator: impl Coordinator) -> Self {
        Self { coordinator: Arc::new(coordinator), settings: CoordinationSettings::default() }
    }

    /// The longest that a message waits for the turn of its chat. Default 2 min.
    pub const fn turn_wait(mut self, wait: Duration) -> Self {
        self.settings.turn_wait = wait;
        self
    }

    /// The longest that a step of a conversation may hold its chat; then it is stopped, and its
    /// checkpoint stays. Keep it above your longest step. Default 1 min.
    pub const fn settle(mut self, settle: Duration) -> Self {
        self.settings.settle = settle;
        self
    }

    /// Which replicas connect providers. Default [`ProviderSession::Auto`].
    pub const fn provider_session(mut self, session: ProviderSession) -> Self {
        self.settings.provider_session = session;
        self
    }

    /// A leader whose connection is not open for this long steps down. Default 1 min.
    pub const fn provider_down(mut self, down: Duration) -> Self {
        self.settings.provider_down = down;
        self
    }

    /// What becomes of conversations when their chat changes the replica.
    pub fn handover(mut self, handover: Handover) -> Self {
        self.settings.handover = handover;
        self
    }

    /// Breaks a rule, so that a test can prove that it notices.
    #[cfg(any(test, feature = "testing"))]
    pub const fn break_rule(mut self, rule: BrokenRule) -> Self {
        self.settings.broken = Some(rule);
        self
    }

    #[cfg(feature = "scheduler")]
    pub(super) fn coordinator(&self) -> Arc<dyn Coordinator> {
        Arc::clone(&self.coordinator)
    }

    pub(super) const fn broken_rule(&self) -> Option<BrokenRule> {
        self.settings.broken
    }

    pub(super) const fn settle_limit(&self) -> Duration {
        self.settings.settle
    }

    pub(super) fn problems(&self, store: Option<&dyn Store>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let settings = &self.settings;
        if settings.settle > settings.turn_wait {
            problems.push(Problem::error(
                "Coordination::settle",
                format!(
                    "a step may hold a chat for {:?}, but messages wait only {:?} for their turn: keep `settle` below `turn_wait`",
                    settings.settle, settings.turn_wait
                ),
            ));
        }
        for (setting, value) in [
            ("Coordination::settle", settings.settle),
            ("Coordination::turn_wait", settings.turn_wait),
            ("Coordination::provider_down", settings.provider_down),
        ] {
            if value.is_zero() {
                problems.push(Problem::error(setting, "0 leaves no time: give a duration"));
            }
        }
        let name = store.map_or("MemoryStore", Store::name);
        if !store.is_some_and(Store::is_shared) {
            let text = format!(
                "coordination needs a shared store: {name} keeps its data in this process or on this machine only; use one that all replicas reach, such as Redis, or drop `.coordination(...)`"
            );
            problems.push(Problem::error("Bot::coordination", text));
        } else if store.is_some_and(|store| store.conditional_checkpoints().is_none()) {
            let text = format!(
                "the store {name} has no compare-and-set for checkpoints: a replica that was frozen may overwrite its successor's"
            );
            problems.push(Problem::warning("Bot::coordination", text));
        }
        problems
    }

    pub(super) fn into_parts(self) -> (Arc<dyn Coordinator>, CoordinationSettings) {
        (self.coordinator, self.settings)
    }
}
