//! A platform without a network whose users call and wait for the reply, each for its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use botmesh_core::id::{ChatKey, MessageId, ProviderId};
use botmesh_core::message::{Message, Outgoing};
use botmesh_core::provider::{
    Capabilities, ConnectionState, Inbound, Provider, ProviderError, Receipt, SendOptions, Session,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// What is said by a message that nobody waits for.
pub(super) const UNATTENDED: &str = "unattended";

const ID: &str = "callers";
const PATIENCE: Duration = Duration::from_secs(300);

/// All callers of a fleet, whichever replica they call.
#[derive(Debug)]
pub(super) struct Crowd {
    /// One for each caller, which its reply notifies.
    replies: Vec<Notify>,
    /// The way into each replica, once it is connected.
    doors: Vec<OnceLock<Inbound>>,
    next: AtomicU64,
    unattended: AtomicU64,
}

/// The connection of one replica.
#[derive(Debug)]
pub(super) struct Callers {
    id: ProviderId,
    crowd: Arc<Crowd>,
    place: usize,
}

impl Crowd {
    pub(super) fn new(callers: usize, replicas: usize) -> Self {
        let replies = (0..callers).map(|_| Notify::new()).collect();
        let doors = (0..replicas).map(|_| OnceLock::new()).collect();
        // No id comes twice, also not in the next fleet on the same store.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let next = AtomicU64::new(u64::try_from(now.as_micros()).unwrap_or_default());
        Self { replies, doors, next, unattended: AtomicU64::new(0) }
    }

    /// How many messages were answered that nobody waits for.
    pub(super) fn unattended(&self) -> u64 {
        self.unattended.load(Ordering::Relaxed)
    }

    /// Lets `callers` callers deliver `messages` messages in all, each the next one when the last
    /// was answered. How long all took, and each from its delivery to its reply.
    pub(super) async fn exchange(
        self: Arc<Self>,
        messages: u64,
        callers: usize,
        chats: u64,
    ) -> Result<(Duration, Vec<Duration>)> {
        let left = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut calling = JoinSet::new();
        for caller in 0..callers {
            let (crowd, left) = (Arc::clone(&self), Arc::clone(&left));
            calling.spawn(async move {
                let mut times = Vec::new();
                while left.fetch_add(1, Ordering::Relaxed) < messages {
                    let begun = Instant::now();
                    let replied = crowd.call(caller, chats);
                    tokio::time::timeout(PATIENCE, replied).await.context("no reply")??;
                    times.push(begun.elapsed());
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(called) = calling.join_next().await {
            times.extend(called??);
        }
        Ok((begun.elapsed(), times))
    }

    async fn call(&self, caller: usize, chats: u64) -> Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = ProviderId::new(ID)?;
        let message = Message::text(chat(&id, number % chats)?, caller.to_string());
        let message = message.with_id(MessageId::new(number.to_string())?);
        let door = self.doors.get(caller % self.doors.len()).and_then(OnceLock::get);
        door.context("a replica is not connected")?.deliver(message).await?;
        self.replies.get(caller).context("there is no such caller")?.notified().await;
        Ok(())
    }
}

/// The key of a chat.
pub(super) fn chat(provider: &ProviderId, number: u64) -> Result<ChatKey> {
    Ok(ChatKey::new(provider, &(1_000_000_000 + number).to_string())?)
}

impl Callers {
    /// The connection of the replica with this place.
    pub(super) fn new(crowd: Arc<Crowd>, place: usize) -> Result<Self> {
        Ok(Self { id: ProviderId::new(ID)?, crowd, place })
    }
}

#[async_trait]
impl Provider for Callers {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        if let Some(door) = self.crowd.doors.get(self.place) {
            door.get_or_init(|| session.inbound().clone());
        }
        session.set_state(ConnectionState::Open);
        session.cancelled().await;
        Ok(())
    }

    async fn send(
        &self,
        _chat: &ChatKey,
        message: &Outgoing,
        _options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let caller = message.text.parse::<usize>().ok();
        match caller.and_then(|caller| self.crowd.replies.get(caller)) {
            Some(reply) => reply.notify_one(),
            None => drop(self.crowd.unattended.fetch_add(1, Ordering::Relaxed)),
        }
        Ok(Receipt::default())
    }
}
