use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Runtime;
use super::event::{Activity, Event, Events};
use super::ingress::Ingress;
use crate::error::BotError;
use crate::id::ProviderId;
use crate::provider::{ConnectionState, Inbound, Provider, ProviderError, Session};

/// Owns every task of a running bot that is not a chat's lane, and ends them in order.
pub(crate) struct Supervisor {
    runtime: Arc<Runtime>,
    cancel: CancellationToken,
    sessions: JoinSet<()>,
    background: JoinSet<()>,
    #[cfg(feature = "scheduler")]
    jobs: JoinSet<()>,
    #[cfg(feature = "scheduler")]
    end_jobs: CancellationToken,
    states: Vec<(ProviderId, watch::Receiver<ConnectionState>)>,
}

/// What a provider is connected with.
pub(super) struct Connection {
    pub(super) provider: Arc<dyn Provider>,
    inbound: Inbound,
    events: Events,
    pub(super) state: Arc<watch::Sender<ConnectionState>>,
    pub(super) cancel: CancellationToken,
}

impl Connection {
    pub(super) fn session(&self, cancel: CancellationToken) -> Session {
        let (events, provider) = (self.events.clone(), self.provider.id().clone());
        Session::new(self.inbound.clone(), cancel, Arc::clone(&self.state)).reporting_to(
            move |error| events.error(None, Activity::Provider(provider.clone()), error),
        )
    }
}

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Starts the background tasks and connects the providers.
    ///
    /// # Errors
    /// When the coordinator cannot start.
    pub(crate) async fn start(runtime: Arc<Runtime>) -> Result<Self, BotError> {
        let mut supervisor = Self {
            cancel: CancellationToken::new(),
            sessions: JoinSet::new(),
            background: JoinSet::new(),
            #[cfg(feature = "scheduler")]
            jobs: JoinSet::new(),
            #[cfg(feature = "scheduler")]
            end_jobs: CancellationToken::new(),
            states: Vec::new(),
            runtime,
        };
        let runtime = &supervisor.runtime;
        if let Some(coordinated) = &runtime.coordinated {
            supervisor.background.spawn(Arc::clone(runtime).forward_coordination_events());
            coordinated.coordinator.start().await?;
        }
        if runtime.conversations.any() {
            supervisor.background.spawn(Arc::clone(runtime).run_timers());
        }
        if runtime.keeps_any() {
            supervisor.background.spawn(Arc::clone(runtime).rearm_stored_wakes());
        }
        if let Some((_, inbox)) = runtime.durable() {
            for danger in inbox.dangers().await? {
                tracing::warn!("{danger}");
            }
            // Claims are looked after by whoever sends the message again.
            if runtime.journals() {
                supervisor.background.spawn(Arc::clone(runtime).look_after_records());
            }
            supervisor.background.spawn(Arc::clone(runtime).forget_records());
        }
        let providers = runtime.sender.providers().to_vec();
        for provider in providers {
            supervisor.connect(provider);
        }
        #[cfg(feature = "scheduler")]
        supervisor.runtime.start_jobs(&mut supervisor.jobs, &supervisor.end_jobs);
        Ok(supervisor)
    }

    fn connect(&mut self, provider: Arc<dyn Provider>) {
        let (state, watched) = watch::channel(ConnectionState::Connecting);
        self.states.push((provider.id().clone(), watched.clone()));
        let runtime = Arc::clone(&self.runtime);
        self.background.spawn(report(Arc::clone(&runtime), provider.id().clone(), watched));
        let connection = Connection {
            inbound: Inbound::new(Arc::new(Ingress {
                runtime: Arc::downgrade(&runtime),
                provider: provider.id().clone(),
            })),
            events: self.runtime.events.clone(),
            provider,
            state: Arc::new(state),
            cancel: self.cancel.clone(),
        };
        self.sessions.spawn(async move {
            if runtime.is_led(&*connection.provider) {
                runtime.connect_while_leading(&connection).await;
            } else {
                let session = connection.session(connection.cancel.child_token());
                keep_connected(&runtime, &*connection.provider, &session).await;
            }
            connection.state.send_replace(ConnectionState::Closed);
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
        #[cfg(feature = "scheduler")]
        self.end_jobs.cancel();
        let finished = tokio::time::timeout(patience, self.runtime.lanes.idle()).await;
        let unhandled = if finished.is_ok() { 0 } else { self.runtime.lanes.abort() };
        #[cfg(feature = "scheduler")]
        self.finish_jobs(patience).await;
        self.cancel.cancel();
        if tokio::time::timeout(patience, self.ended()).await.is_err() {
            tracing::warn!("a provider did not close in time and was cut off");
        }
        if let Some(coordinated) = &self.runtime.coordinated
            && let Err(error) = coordinated.coordinator.stop().await
        {
            self.runtime.events.error(None, Activity::Turn, error);
        }
        self.runtime.events.emit(Event::Stopped { unhandled });
        unhandled
    }

    /// Lets the occurrences that are being run come to their ends; their lease is released then.
    #[cfg(feature = "scheduler")]
    async fn finish_jobs(&mut self, patience: Duration) {
        let ended = async { while self.jobs.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, ended).await.is_err() {
            tracing::warn!("a job did not end in time and was cut off");
            self.jobs.shutdown().await;
        }
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

/// Runs a provider, and again after a while when it fails in a way that may pass. Returns whether
/// it has ended without an error.
pub(super) async fn keep_connected(
    runtime: &Runtime,
    provider: &dyn Provider,
    session: &Session,
) -> bool {
    let mut retry = FIRST_RETRY;
    loop {
        let begun = tokio::time::Instant::now();
        let Err(error) = provider.run(session.clone()).await else { return true };
        if session.is_cancelled() {
            return true;
        }
        let for_good =
            matches!(error, ProviderError::Closed { .. } | ProviderError::Unauthorized { .. });
        runtime.events.error(None, Activity::Provider(provider.id().clone()), error);
        if for_good {
            session.set_state(ConnectionState::Closed);
            return false;
        }
        session.set_state(ConnectionState::Connecting);
        if begun.elapsed() > LAST_RETRY {
            retry = FIRST_RETRY;
        }
        tokio::select! {
            biased;
            () = session.cancelled() => return true,
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
