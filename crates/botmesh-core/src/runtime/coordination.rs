use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Runtime;
use super::broken_rule::BrokenRule;
use super::event::Event;
use super::handover::Handover;
use super::place::Place;
use crate::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, CoordinatorEvent, LossReason, TurnGuard,
};
use crate::id::{ChatKey, Fence};

/// How long after a lost place another one is reserved.
const RESERVE_AGAIN: Duration = Duration::from_millis(200);

/// How replicas are coordinated.
#[derive(Debug, Clone)]
pub(crate) struct CoordinationSettings {
    pub(crate) turn_wait: Duration,
    pub(crate) settle: Duration,
    pub(crate) provider_session: ProviderSession,
    pub(crate) provider_down: Duration,
    pub(crate) handover: Handover,
    pub(crate) broken: Option<BrokenRule>,
}

/// Which replicas connect a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ProviderSession {
    /// The leader alone where the platform allows one connection only, else all.
    #[default]
    Auto,
    /// The leader alone.
    Leader,
    /// All replicas.
    Shared,
}

/// What a replica is for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// It is the one that is connected.
    Leader,
    /// Another is connected, and this one takes its place when that fails.
    Standby,
    /// Each replica is connected, or there is only one.
    Shared,
}

/// What a bot with coordination has beside the rest.
#[derive(Debug)]
pub(crate) struct Coordinated {
    pub(super) coordinator: Arc<dyn Coordinator>,
    pub(super) settings: CoordinationSettings,
}

impl Default for CoordinationSettings {
    fn default() -> Self {
        Self {
            turn_wait: Duration::from_secs(120),
            settle: Duration::from_secs(60),
            provider_session: ProviderSession::Auto,
            provider_down: Duration::from_secs(60),
            handover: Handover::default(),
            broken: None,
        }
    }
}

impl Coordinated {
    pub(crate) const fn new(
        coordinator: Arc<dyn Coordinator>,
        settings: CoordinationSettings,
    ) -> Self {
        Self { coordinator, settings }
    }

    /// Whether a test breaks this rule.
    pub(super) fn breaks(&self, rule: BrokenRule) -> bool {
        cfg!(any(test, feature = "testing")) && self.settings.broken == Some(rule)
    }
}

impl Runtime {
    /// Waits for the turn of the place that was reserved when the work arrived. Where that could
    /// not be reserved, or was lost with the session of this replica, the work takes the next place
    /// of its lane, and another one is reserved at the end.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        coordinated: &Coordinated,
        chat: &ChatKey,
        place: Place,
    ) -> Result<ChatTurn, CoordinationError> {
        let coordinator = &coordinated.coordinator;
        let until = Instant::now() + coordinated.settings.turn_wait;
        let mut ticket = place.ticket().await;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let acquired = match ticket {
                Ok(ticket) => {
                    let wait = AcquireTurn::new().with_wait(left);
                    coordinator.acquire_turn(ticket, wait).await
                }
                Err(error) => Err(error),
            };
            match acquired {
                Err(
                    CoordinationError::LeaseLost { .. } | CoordinationError::Unavailable { .. },
                ) if left.is_zero() => return acquired,
                // The places of a session that is gone are all worth nothing: to the next one.
                Err(CoordinationError::LeaseLost { .. }) => {}
                Err(CoordinationError::Unavailable { .. }) => {
                    tokio::time::sleep(RESERVE_AGAIN.min(left)).await;
                }
                acquired => return acquired,
            }
            ticket = match self.lanes.next_place(chat, self) {
                Some(place) => place.ticket().await,
                None => coordinator.reserve(chat).await,
            };
        }
    }

    /// Runs a step of a conversation for at most `settle`. Beyond that it is stopped, its turn is
    /// over, and nothing that it kept can act again.
    pub(super) async fn settled<T>(
        &self,
        guard: &TurnGuard,
        step: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(coordinated) = &self.coordinated else { return Some(step.await) };
        if coordinated.breaks(BrokenRule::SettlesNothing) {
            return Some(step.await);
        }
        match tokio::time::timeout(coordinated.settings.settle, step).await {
            Ok(done) => Some(done),
            Err(_) => {
                guard.end(LossReason::Settled);
                None
            }
        }
    }

    /// What this replica remembers of the turn's chat is put aside unless nobody else had the
    /// chat meanwhile.
    pub(super) fn forget_if_stale(&self, turn: &ChatTurn) {
        let broken = |it: &Coordinated| it.breaks(BrokenRule::KeepsStaleCopies);
        if self.coordinated.as_ref().is_some_and(broken) {
            return;
        }
        let chat: &ChatKey = turn.key();
        let was_own =
            turn.previous_holder().is_some_and(|holder| turn.incarnation() == Some(holder));
        // A turn that was granted to this replica and never used counts as another's.
        if let Some(before) = turn.previous_fence().filter(|_| was_own) {
            self.conversations.keep_absent(chat, before, turn.fence());
        }
        let is_stale = |last| !was_own || turn.previous_fence() != Some(last);
        if let Some(mut stale) = self.conversations.take_if(chat, |active| is_stale(active.fence)) {
            stale.disarm(&self.timers);
        }
    }

    /// Under which fence it is noted that a chat has no checkpoint: a process that is alone with its
    /// store has one for all turns.
    pub(super) fn absent_under(&self, turn: &TurnGuard) -> Fence {
        if self.coordinated.is_some() { turn.fence() } else { Fence::new(0) }
    }

    pub(super) async fn forward_coordination_events(self: Arc<Self>) {
        let Some(coordinated) = &self.coordinated else { return };
        let mut events = coordinated.coordinator.subscribe();
        loop {
            match events.recv().await {
                Ok(event) => self.emit_coordination(event),
                Err(tokio::sync::broadcast::error::RecvError::Lagged(missed)) => {
                    self.events.emit(Event::Missed(missed));
                }
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    pub(super) fn emit_coordination(&self, event: CoordinatorEvent) {
        match &event {
            CoordinatorEvent::Leader { name, fence } => {
                tracing::info!(%name, %fence, "this replica leads");
            }
            CoordinatorEvent::Follower { name, reason } => {
                tracing::info!(%name, %reason, "this replica follows");
            }
            CoordinatorEvent::Handover { name, outcome, .. } => {
                tracing::info!(%name, ?outcome, "a conversation was handed over");
            }
            _ => {}
        }
        self.events.emit(Event::Coordination(event));
    }
}
