use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Runtime;
use super::event::{Activity, Event};
use super::ingress::Ingress;
use crate::id::ProviderId;
use crate::provider::{ConnectionState, Inbound, Provider, ProviderError, Session};

/// Owns every task of a running bot that is not a chat's lane, and ends them in order.
pub(crate) struct Supervisor {
    runtime: Arc<Runtime>,
    cancel: CancellationToken,
    sessions: JoinSet<()>,
    background: JoinSet<()>,
    states: Vec<(ProviderId, watch::Receiver<ConnectionState>)>,
}

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Starts the background tasks and connects the providers.
    pub(crate) fn start(runtime: Arc<Runtime>) -> Self {
        let mut supervisor = Self {
            cancel: CancellationToken::new(),
            sessions: JoinSet::new(),
            background: JoinSet::new(),
            states: Vec::new(),
            runtime,
        };
        if supervisor.runtime.conversations.any() {
            supervisor.background.spawn(Arc::clone(&supervisor.runtime).run_timers());
        }
        if supervisor.runtime.conversations.any_persistent() {
            supervisor.background.spawn(Arc::clone(&supervisor.runtime).rearm_stored_wakes());
        }
        let providers = supervisor.runtime.sender.providers().to_vec();
        for provider in providers {
            supervisor.connect(provider);
        }
        supervisor
    }

    fn connect(&mut self, provider: Arc<dyn Provider>) {
        let (state, watched) = watch::channel(ConnectionState::Connecting);
        let state = Arc::new(state);
        self.states.push((provider.id().clone(), watched.clone()));
        let runtime = Arc::clone(&self.runtime);
        let inbound = Inbound::new(Arc::new(Ingress {
            runtime: Arc::clone(&runtime),
            provider: provider.id().clone(),
        }));
        let session = Session::new(inbound, self.cancel.child_token(), Arc::clone(&state));
        self.background.spawn(report(Arc::clone(&runtime), provider.id().clone(), watched));
        self.sessions.spawn(async move {
            keep_connected(&runtime, provider.as_ref(), &session).await;
            session.set_state(ConnectionState::Closed);
        });
    }

    /// The states of the providers' connections.
    pub(crate) fn states(&self) -> &[(ProviderId, watch::Receiver<ConnectionState>)] {
        &self.states
    }

    /// Waits until every provider's connection has ended by itself. Safe to cancel.
    pub(crate) async fn ended(&mut self) {
        while let Some(ended) = self.sessions.join_next().await {
            self.note(ended);
        }
    }

    /// Stops in order: takes nothing more, lets what was accepted finish for at most `patience`,
    /// closes the transports, ends the background.
    pub(crate) async fn stop(mut self, patience: Duration) -> usize {
        self.runtime.lanes.close();
        let finished = tokio::time::timeout(patience, self.runtime.lanes.idle()).await;
        let unhandled = if finished.is_ok() { 0 } else { self.runtime.lanes.abort() };
        self.cancel.cancel();
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            tracing::warn!("a provider did not close in time and was cut off");
        }
        self.runtime.events.emit(Event::Stopped { unhandled });
        unhandled
    }

    /// Ends everything where it stands, as a crash would.
    pub(crate) fn crash(self) {
        self.runtime.lanes.abort();
    }

    fn note(&self, ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended
            && error.is_panic()
        {
            self.runtime.events.error(None, Activity::Ingress, error);
        }
    }
}

/// Runs a provider, and again after a while when it fails in a way that may pass.
async fn keep_connected(runtime: &Runtime, provider: &dyn Provider, session: &Session) {
    let mut retry = FIRST_RETRY;
    loop {
        let begun = tokio::time::Instant::now();
        let Err(error) = provider.run(session.clone()).await else { return };
        if session.is_cancelled() {
            return;
        }
        let for_good =
            matches!(error, ProviderError::Closed { .. } | ProviderError::Unauthorized { .. });
        runtime.events.error(None, Activity::Provider(provider.id().clone()), error);
        if for_good {
            return;
        }
        session.set_state(ConnectionState::Connecting);
        if begun.elapsed() > LAST_RETRY {
            retry = FIRST_RETRY;
        }
        tokio::select! {
            () = session.cancelled() => return,
            () = tokio::time::sleep(retry) => {}
        }
        retry = (retry * 2).min(LAST_RETRY);
    }
}

async fn report(
    runtime: Arc<Runtime>,
    provider: ProviderId,
    mut state: watch::Receiver<ConnectionState>,
) {
    while state.changed().await.is_ok() {
        let state = *state.borrow_and_update();
        runtime.events.emit(Event::Connection { provider: provider.clone(), state });
    }
}
