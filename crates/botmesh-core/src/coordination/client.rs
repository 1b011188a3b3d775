//! What every coordinator does alike: it reserves, waits, renews, releases and repairs over any
//! [`Backend`]. A coordinator for another backend supplies that trait and nothing else.

mod asking;
mod backend;
mod forward;
mod giving_up;
mod goodbye;
mod journal;
mod keeper;
mod shared;
#[cfg(test)]
mod tests;
mod tickets;
mod waiting;

pub use backend::{Backend, BackendError, PushSink};
pub use journal::{Arrival, Departure, JournalBackend};
// For `coordinator_by_client!`.
#[doc(hidden)]
pub use {async_trait::async_trait as __async_trait, tokio::sync::broadcast as __broadcast};

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::task::JoinHandle;

use self::backend::PushPath;
use self::goodbye::say_goodbye;
use self::keeper::Progress;
use self::shared::{Live, Phase, SECOND, Shared, unavailable};
use self::tickets::TicketMap;
use super::release::Claim;
use super::transition::Reply;
use super::{
    AcquireTurn, ChatTurn, CoordinationError, CoordinationKey, Coordinator, CoordinatorEvent,
    CoordinatorSettings, JournaledTurns, Leadership, LeaseClock, LossReason, Releases, Ticket,
};
use crate::id::{ChatKey, IncarnationId, LeaderName, ReplicaId};
use crate::watched::Watched;

/// Events that a slow subscriber may lag behind.
const EVENTS: usize = 1024;

/// A [`Coordinator`] over any [`Backend`].
#[derive(Debug)]
pub struct CoordinatorClient<B> {
    backend: Arc<B>,
    replica: ReplicaId,
    settings: CoordinatorSettings,
    clock: LeaseClock,
    isolated: bool,
    events: broadcast::Sender<CoordinatorEvent>,
    running: Mutex<Option<Running<B>>>,
    /// Held while starting and stopping.
    changing: tokio::sync::Mutex<()>,
}

/// Builds a [`CoordinatorClient`].
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct CoordinatorClientBuilder<B> {
    backend: B,
    replica: Option<ReplicaId>,
    settings: CoordinatorSettings,
    clock: Option<LeaseClock>,
    isolated: bool,
}

#[derive(Debug)]
struct Running<B> {
    shared: Arc<Shared<B>>,
    tasks: Vec<JoinHandle<()>>,
    /// Dropped, it ends the keeper on its thread.
    _keeper: Option<oneshot::Sender<()>>,
}

impl<B> Drop for Running<B> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl<B: Backend> CoordinatorClientBuilder<B> {
    /// The id of this replica; random by default.
    pub fn replica_id(mut self, replica: ReplicaId) -> Self {
        self.replica = Some(replica);
        self
    }

    /// How to lease and wait.
    pub fn settings(mut self, settings: CoordinatorSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The clock of the local deadlines; the machine's by default.
    pub const fn clock(mut self, clock: LeaseClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Renews on a thread of its own, so that busy tasks never delay a heartbeat. It stops renewing
    /// when the bot's runtime makes no progress for half a lease: a deadlocked replica must not
    /// keep its chats for ever.
    pub const fn isolated_heartbeat(mut self, isolated: bool) -> Self {
        self.isolated = isolated;
        self
    }

    /// Builds the coordinator. It contacts nothing before its start.
    #[must_use]
    pub fn build(self) -> CoordinatorClient<B> {
        CoordinatorClient {
            backend: Arc::new(self.backend),
            replica: self.replica.unwrap_or_else(ReplicaId::random),
            settings: self.settings,
            clock: self.clock.unwrap_or_else(LeaseClock::machine),
            isolated: self.isolated,
            events: broadcast::Sender::new(EVENTS),
            running: Mutex::new(None),
            changing: tokio::sync::Mutex::new(()),
        }
    }
}

impl<B: Backend> CoordinatorClient<B> {
    /// Begins a coordinator over `backend`.
    pub fn builder(backend: B) -> CoordinatorClientBuilder<B> {
        let settings = CoordinatorSettings::default();
        CoordinatorClientBuilder { backend, replica: None, settings, clock: None, isolated: false }
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &CoordinatorSettings {
        &self.settings
    }

    /// How many tickets this replica has reserved, waits for or holds.
    #[must_use]
    pub fn open_tickets(&self) -> usize {
        self.running.lock().as_ref().map_or(0, |running| running.shared.tickets.len())
    }

    /// Ends everything at once and tells the backend nothing, as when the process is killed.
    pub fn abandon(&self) {
        if let Some(running) = self.running.lock().take() {
            end(&running.shared);
        }
    }

    fn shared(&self) -> Result<Arc<Shared<B>>, CoordinationError> {
        let running = self.running.lock();
        running
            .as_ref()
            .map(|running| Arc::clone(&running.shared))
            .ok_or(CoordinationError::Stopped)
    }

    fn launch(&self) -> oneshot::Receiver<Result<(), CoordinationError>> {
        let shared = Arc::new_cyclic(|shared: &Weak<Shared<B>>| Shared {
            backend: Arc::clone(&self.backend),
            replica: self.replica.clone(),
            settings: self.settings.clone(),
            clock: self.clock,
            tickets: Arc::new(TicketMap::default()),
            releases: Releases::new(shared.clone(), Handle::current()),
            live: Watched::new(Phase::Registering),
            path: Watched::new(PushPath::default()),
            events: self.events.clone(),
            doubt: Notify::new(),
            sequence: AtomicU64::new(0),
        });
        let (sender, first) = oneshot::channel();
        let mut tasks = Vec::new();
        let keeper = if self.isolated {
            let progress = Arc::new(Progress::default());
            tasks.push(tokio::spawn(Arc::clone(&progress).prove(Arc::clone(&shared))));
            isolate(Arc::clone(&shared), sender, progress)
        } else {
            tasks.push(tokio::spawn(keeper::keep(Arc::clone(&shared), sender, None)));
            None
        };
        *self.running.lock() = Some(Running { shared, tasks, _keeper: keeper });
        first
    }
}

/// Runs the keeper on a thread and a runtime of its own.
fn isolate<B: Backend>(
    shared: Arc<Shared<B>>,
    first: oneshot::Sender<Result<(), CoordinationError>>,
    progress: Arc<Progress>,
) -> Option<oneshot::Sender<()>> {
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("botmesh-heartbeat".into());
    let spawned = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = keeper::keep(shared, first, Some(progress)) => {}
                }
            }),
            Err(error) => {
                let _ = first.send(Err(unavailable("start a heartbeat thread", error.into())));
            }
        }
    });
    // Without a thread `first` is dropped, which the start reports.
    spawned.ok().map(|_| stop)
}

/// Ends all rights of this replica, locally.
fn end<B>(shared: &Shared<B>) -> Option<Arc<Live>> {
    let before = shared.live.replace(Phase::Stopped);
    let Phase::Live(live) = before else { return None };
    live.lease.end(LossReason::Stopped);
    Some(live)
}

#[async_trait]
impl<B: Backend> Coordinator for CoordinatorClient<B> {
    fn replica_id(&self) -> &ReplicaId {
        &self.replica
    }

    fn incarnation(&self) -> Option<IncarnationId> {
        let shared = self.shared().ok()?;
        match shared.live.get() {
            Phase::Live(live) => Some(live.lease.incarnation().clone()),
            _ => None,
        }
    }

    async fn start(&self) -> Result<(), CoordinationError> {
        let _changing = self.changing.lock().await;
        if self.running.lock().is_some() {
            return Ok(());
        }
        let first = self.launch();
        let started = first.await.unwrap_or_else(|_| {
            Err(unavailable("start a heartbeat thread", "no thread could be started".into()))
        });
        if started.is_err() {
            self.running.lock().take();
        }
        started
    }

    async fn stop(&self) -> Result<(), CoordinationError> {
        let _changing = self.changing.lock().await;
        let Some(running) = self.running.lock().take() else { return Ok(()) };
        let shared = &running.shared;
        let Some(live) = end(shared) else { return Ok(()) };
        let patience = shared.settings.lease() / 3;
        let told = tokio::time::timeout(patience, say_goodbye(shared, &live)).await;
        shared.backend.close().await;
        match told {
            Ok(told) => told,
            Err(elapsed) => Err(unavailable("stop", elapsed.into())),
        }
    }

    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError> {
        let shared = self.shared()?;
        let (_, claim) = shared.enter(&CoordinationKey::from(key)).await?;
        Ok(Ticket::from_claim(key.clone(), claim))
    }

    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError> {
        let shared = self.shared()?;
        let key = CoordinationKey::from(ticket.key());
        if !ticket.claim().comes_from(&shared.releases) {
            return Err(CoordinationError::ForeignTicket { key });
        }
        let wait = Some(options.wait.unwrap_or(shared.settings.turn_wait()));
        let session = Arc::clone(ticket.session());
        let grant = shared.wait(&session, &key, ticket.sequence(), wait).await?;
        Ok(ChatTurn::granted(ticket, grant))
    }

    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError> {
        let shared = self.shared()?;
        let key = CoordinationKey::from(name);
        let mut backoff = shared.backoff();
        loop {
            let campaign = async {
                let (live, claim) = shared.enter(&key).await?;
                let grant = shared.wait(&live.lease, &key, claim.sequence, None).await?;
                Ok(elected(&shared, name, claim, &grant))
            };
            match campaign.await {
                Ok(leadership) => return Ok(leadership),
                Err(error @ (CoordinationError::Stopped | CoordinationError::Unfit { .. })) => {
                    return Err(error);
                }
                // A lost session, a backend that is away, a full queue: the campaign goes on.
                Err(_) => tokio::time::sleep(backoff.step()).await,
            }
        }
    }

    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError> {
        let shared = self.shared()?;
        let key = CoordinationKey::from(name);
        let mut asked = shared.ask(&key, true).await?;
        if let (live, _, Reply::Busy { remaining: Duration::ZERO }) = &asked
            && shared.renew_again(&live.lease).await.is_ok()
        {
            // The leader looks dead, and now this replica may find it so.
            asked = shared.ask(&key, true).await?;
        }
        match asked {
            (_, _, Reply::Busy { .. }) => Ok(None),
            (live, claim, _) => {
                let grant = shared.wait(&live.lease, &key, claim.sequence, Some(SECOND)).await?;
                Ok(Some(elected(&shared, name, claim, &grant)))
            }
        }
    }

    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent> {
        self.events.subscribe()
    }

    fn journaled(&self) -> Option<&dyn JournaledTurns> {
        self.backend.journal().map(|_| self as _)
    }
}

fn elected<B: Backend>(
    shared: &Shared<B>,
    name: &LeaderName,
    claim: Claim,
    grant: &super::Grant,
) -> Leadership {
    shared.emit(CoordinatorEvent::Leader { name: name.clone(), fence: grant.fence });
    Leadership::from_claim(name.clone(), claim, grant)
}
