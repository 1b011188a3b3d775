//! What all parts of one replica share, and its coordinator and connection as the run sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, CoordinatorEvent, Leadership, Ticket,
};
use botmesh_core::id::{ChatKey, IncarnationId, LeaderName, MessageId, ProviderId, ReplicaId};
use botmesh_core::message::Outgoing;
use botmesh_core::provider::{
    Capabilities, Provider, ProviderError, Receipt, SendOptions, Session,
};
use botmesh_core::testing::{Dice, MemoryCoordinator, TestProvider};
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};

use crate::history::History;
use crate::plan::Plan;

const NO_CRASH: u8 = 0;
const BEFORE: u8 = 1;
const AFTER: u8 = 2;

#[derive(Debug)]
pub struct Replica {
    pub number: usize,
    pub plan: Arc<Plan>,
    pub history: Arc<History>,
    pub dice: Mutex<Dice>,
    /// How often it was started.
    pub life: AtomicU32,
    pub healed: Arc<AtomicBool>,
    crash: AtomicU8,
    crashes: mpsc::UnboundedSender<usize>,
}

impl Replica {
    pub fn new(
        number: usize,
        plan: &Arc<Plan>,
        history: &Arc<History>,
        healed: &Arc<AtomicBool>,
        crashes: mpsc::UnboundedSender<usize>,
    ) -> Self {
        Self {
            number,
            plan: Arc::clone(plan),
            history: Arc::clone(history),
            dice: Mutex::new(Dice::new(plan.seed, 100 + number as u64)),
            life: AtomicU32::new(0),
            healed: Arc::clone(healed),
            crash: AtomicU8::new(NO_CRASH),
            crashes,
        }
    }

    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// The next call of the store or the platform is its last.
    pub fn crash_soon(&self, after: bool) {
        self.crash.store(if after { AFTER } else { BEFORE }, Ordering::Relaxed);
    }

    pub fn survives(&self) {
        self.crash.store(NO_CRASH, Ordering::Relaxed);
    }

    pub fn reborn(&self) {
        self.survives();
        self.life.fetch_add(1, Ordering::Relaxed);
    }

    pub async fn crash_in_call(&self, after: bool) {
        let here = if after { AFTER } else { BEFORE };
        if self.crash.compare_exchange(here, NO_CRASH, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.history.disturb(None, Duration::from_secs(60));
            let _ = self.crashes.send(self.number);
            std::future::pending::<()>().await;
        }
    }
}

#[derive(Debug, Clone)]
pub struct Watched {
    pub inner: Arc<MemoryCoordinator>,
    pub replica: Arc<Replica>,
}

#[async_trait]
impl Coordinator for Watched {
    fn replica_id(&self) -> &ReplicaId {
        self.inner.replica_id()
    }

    fn incarnation(&self) -> Option<IncarnationId> {
        self.inner.incarnation()
    }

    async fn start(&self) -> Result<(), CoordinationError> {
        self.inner.start().await
    }

    async fn stop(&self) -> Result<(), CoordinationError> {
        self.inner.stop().await
    }

    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError> {
        self.inner.reserve(key).await
    }

    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError> {
        let turn = self.inner.acquire_turn(ticket, options).await?;
        self.replica.history.granted(self.replica.number, turn.guard());
        Ok(turn)
    }

    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError> {
        self.inner.lead(name).await
    }

    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError> {
        self.inner.try_lead(name).await
    }

    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent> {
        self.inner.subscribe()
    }
}

#[derive(Debug, Clone)]
pub struct Connection {
    pub inner: TestProvider,
    pub replica: Arc<Replica>,
}

struct Connected<'a>(&'a Replica);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.history.disconnects(self.0.number);
    }
}

#[async_trait]
impl Provider for Connection {
    fn id(&self) -> &ProviderId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        self.replica.history.connects(self.replica.number, self.replica.plan.exclusive);
        let _connected = Connected(&self.replica);
        self.inner.run(session).await
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let replica = &self.replica;
        replica.history.acts(replica.number, chat, &format!("sends {:?}", &*message.text), None);
        replica.crash_in_call(false).await;
        let (delay, fails, loses) = {
            let mut dice = replica.dice.lock();
            let rate = if replica.is_healed() { 0 } else { replica.plan.send_fails };
            (dice.millis(0, 20), dice.happens(rate), dice.happens(rate))
        };
        let failed = || ProviderError::Unreachable {
            provider: self.inner.id().clone(),
            source: "the simulation".into(),
        };
        if fails || loses {
            replica.history.disturb(Some(chat), Duration::from_secs(5));
        }
        tokio::time::sleep(delay).await;
        if fails {
            replica.history.note(format!("{} {chat} the send fails", replica.number));
            return Err(failed());
        }
        let sent = self.inner.send(chat, message, options).await;
        replica.history.note(format!(
            "{} {chat} sent {:?}: {}",
            replica.number,
            &*message.text,
            sent.is_ok()
        ));
        if sent.is_err() {
            replica.history.disturb(Some(chat), Duration::from_secs(5));
        }
        replica.crash_in_call(true).await;
        if loses { Err(failed()) } else { sent }
    }

    async fn delete(&self, chat: &ChatKey, message: &MessageId) -> Result<(), ProviderError> {
        self.inner.delete(chat, message).await
    }
}
