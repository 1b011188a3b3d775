//! The process of ours.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use async_trait::async_trait;
use botmesh_core::bot::Coordination;
use botmesh_core::message::Outgoing;
use botmesh_core::provider::{
    Capabilities, ConnectionState, Provider, ProviderError, Receipt, SendOptions, Session,
};
use botmesh_core::{Bot, ChatKey, Message, MessageId, ProviderId};
use botmesh_redis_store::RedisStore;
use tokio::sync::Notify;

use super::Done;

/// One process of a bot with a handler that replies.
#[derive(Debug)]
pub struct Replica {
    url: String,
    index: u64,
    chats: u64,
    messages: u64,
    at_once: u64,
}

/// A platform in memory that has many messages.
#[derive(Debug, Clone)]
struct Crowd(Arc<Messages>);

#[derive(Debug)]
struct Messages {
    id: ProviderId,
    index: u64,
    chats: u64,
    count: u64,
    /// So many are handled before it counts: a server that was just started grants nothing for a
    /// lease.
    warm_up: u64,
    begin: Notify,
    begun: AtomicU64,
    handled: AtomicU64,
    ended: AtomicU64,
    all: Notify,
}

impl Replica {
    /// The first argument of the process.
    pub const FLAG: &'static str = "--replica";

    /// Reads the arguments after the flag.
    ///
    /// # Errors
    /// When there are others than [`Contender::measure`](super::Contender::measure) gives.
    pub fn read(arguments: &[String]) -> Result<Self> {
        let [url, index, chats, messages, at_once] = arguments else {
            bail!("a replica is started by the bench, not by hand");
        };
        Ok(Self {
            url: url.clone(),
            index: index.parse()?,
            chats: chats.parse()?,
            messages: messages.parse()?,
            at_once: at_once.parse()?,
        })
    }

    /// Handles its messages and prints what it has done.
    ///
    /// # Errors
    /// When the bot does not start.
    pub async fn run(self) -> Result<()> {
        let store = RedisStore::connect(self.url.as_str()).prefix("bench").await?;
        let coordinator = store.coordinator().build()?;
        let crowd = Crowd(Arc::new(Messages {
            id: ProviderId::new("crowd")?,
            index: self.index,
            chats: self.chats,
            count: self.messages,
            warm_up: self.messages / 4 + 1,
            begin: Notify::new(),
            begun: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            all: Notify::new(),
        }));
        let running = Bot::new(crowd.clone())
            .store(store)
            .coordination(Coordination::new(coordinator))
            .max_in_work(usize::try_from(self.at_once)?)
            .fallback(|ctx| async move { ctx.reply("Hello!").await })
            .start()
            .await
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        crowd.0.all.notified().await;
        println!("ready");
        tokio::task::spawn_blocking(|| std::io::stdin().lock().read_line(&mut String::new()))
            .await??;
        let messages = crowd.0;
        messages.handled.store(0, Ordering::SeqCst);
        messages.begun.store(now()?, Ordering::SeqCst);
        messages.begin.notify_one();
        messages.all.notified().await;
        let done = Done {
            begun: messages.begun.load(Ordering::SeqCst),
            ended: messages.ended.load(Ordering::SeqCst),
            handled: messages.handled.load(Ordering::SeqCst),
            skipped: 0,
            refused: 0,
        };
        println!("{}", serde_json::to_string(&done)?);
        running.stop().await;
        Ok(())
    }
}

/// Milliseconds of the clock that all processes share.
fn now() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    u64::try_from(now.as_millis()).context("the clock is far off")
}

impl Messages {
    fn message(&self, number: u64) -> Option<Message> {
        // The same chats in the same order as the peer's script has them.
        let chat = (number * 7_919 + self.index * 104_729) % self.chats;
        let chat = ChatKey::new(&self.id, &chat.to_string()).ok()?;
        let id = MessageId::new(format!("{}-{number}", self.index)).ok()?;
        Some(Message::text(chat, "hi").with_id(id))
    }
}

#[async_trait]
impl Provider for Crowd {
    fn id(&self) -> &ProviderId {
        &self.0.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        session.set_state(ConnectionState::Open);
        let failed = |reason: String| ProviderError::Closed { provider: self.0.id.clone(), reason };
        for number in 0..self.0.warm_up + self.0.count {
            if number == self.0.warm_up {
                self.0.begin.notified().await;
            }
            let message = self.0.message(number).ok_or_else(|| failed("a bad id".to_owned()))?;
            let delivered = session.inbound().deliver(message).await;
            delivered.map_err(|error| failed(error.to_string()))?;
        }
        session.cancelled().await;
        Ok(())
    }

    async fn send(
        &self,
        _chat: &ChatKey,
        _message: &Outgoing,
        _options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        self.0.ended.fetch_max(now().unwrap_or_default(), Ordering::SeqCst);
        let warm = self.0.begun.load(Ordering::SeqCst) > 0;
        let wanted = if warm { self.0.count } else { self.0.warm_up };
        if self.0.handled.fetch_add(1, Ordering::SeqCst) + 1 == wanted {
            self.0.all.notify_one();
        }
        Ok(Receipt::default())
    }
}
