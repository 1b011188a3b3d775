use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use botmesh_core::id::{ChatKey, IdError, MessageId, ProviderId};
use botmesh_core::message::{Message, Outgoing};
use botmesh_core::provider::{
    Capabilities, ConnectionState, Provider, ProviderError, Receipt, SendOptions, Session,
};
use tokio::sync::{Mutex, Notify, mpsc, oneshot};

/// No more replies than this are taken at the same moment.
const MOST_THREADS: u64 = 64;

/// A platform without a network: delivers as fast as the bot takes the messages, and counts the
/// replies.
#[derive(Debug)]
pub struct Feed {
    id: ProviderId,
    orders: Mutex<mpsc::Receiver<Order>>,
    replies: Arc<Replies>,
}

/// Tells a [`Feed`] what to deliver.
#[derive(Debug)]
pub struct Driver {
    orders: mpsc::Sender<Order>,
    chats: u64,
    sent: u64,
}

#[derive(Debug)]
struct Order {
    first: u64,
    messages: u64,
    batch: u64,
    chats: u64,
    took: oneshot::Sender<Vec<Duration>>,
}

#[derive(Debug)]
struct Replies {
    epoch: Instant,
    count: AtomicU64,
    wanted: AtomicU64,
    /// When the wanted one came, in nanoseconds since `epoch`.
    came: AtomicU64,
    arrived: Notify,
}

impl Feed {
    /// A platform with this many chats.
    ///
    /// # Errors
    /// None in practice: the id of the platform is valid.
    pub fn new(chats: u64) -> Result<(Self, Driver)> {
        let (sender, orders) = mpsc::channel(1);
        let replies = Replies {
            epoch: Instant::now(),
            count: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            came: AtomicU64::new(0),
            arrived: Notify::new(),
        };
        let id = ProviderId::new("feed")?;
        let feed = Self { id, orders: Mutex::new(orders), replies: Arc::new(replies) };
        Ok((feed, Driver { orders: sender, chats, sent: 0 }))
    }
}

/// The message with this number: each chat has its turn.
///
/// It is made as a provider would, key, id and text anew.
///
/// # Errors
/// None in practice: the ids are valid.
pub(crate) fn message(provider: &ProviderId, number: u64, chats: u64) -> Result<Message, IdError> {
    let chat = ChatKey::new(provider, &(1_000_000_000 + number % chats).to_string())?;
    let id = MessageId::new(number.to_string())?;
    Ok(Message::text(chat, "hi").with_id(id))
}

impl Driver {
    /// Delivers `messages` messages, `batch` at a time: the next batch begins when all of the one
    /// before have been answered. Returns how long each batch took, from the first delivery to the
    /// last reply.
    ///
    /// # Errors
    /// When the bot has ended or answers no more.
    pub async fn deliver(&mut self, messages: u64, batch: u64) -> Result<Vec<Duration>> {
        let (took, answer) = oneshot::channel();
        let order = Order { first: self.sent, messages, batch, chats: self.chats, took };
        self.sent += messages;
        self.orders.send(order).await.ok().context("the bot has ended")?;
        let patience = Duration::from_secs(300);
        tokio::time::timeout(patience, answer)
            .await
            .context("a message was not answered")?
            .context("the feed has ended")
    }

    /// Delivers `messages` messages at once and returns how long it took.
    ///
    /// # Errors
    /// As [`deliver`](Self::deliver).
    pub async fn flood(&mut self, messages: u64) -> Result<Duration> {
        Ok(self.deliver(messages, messages).await?.iter().sum())
    }

    /// How many chats the platform has.
    #[must_use]
    pub const fn chats(&self) -> u64 {
        self.chats
    }
}

impl Feed {
    async fn carry_out(&self, session: &Session, order: Order) -> Result<(), ProviderError> {
        let replies = &self.replies;
        let failed = |reason: String| ProviderError::Closed { provider: self.id.clone(), reason };
        let mut took = Vec::new();
        let mut number = order.first;
        let end = order.first + order.messages;
        while number < end {
            let batch = order.batch.min(end - number);
            let wanted = replies.count.load(Ordering::SeqCst) + batch;
            replies.wanted.store(wanted, Ordering::SeqCst);
            let begun = replies.epoch.elapsed();
            for _ in 0..batch {
                let message = message(&self.id, number, order.chats)
                    .map_err(|error| failed(error.to_string()))?;
                session
                    .inbound()
                    .deliver(message)
                    .await
                    .map_err(|error| failed(error.to_string()))?;
                number += 1;
            }
            while replies.count.load(Ordering::SeqCst) < wanted {
                replies.arrived.notified().await;
            }
            took.push(
                Duration::from_nanos(replies.came.load(Ordering::SeqCst)).saturating_sub(begun),
            );
        }
        // Nobody listens when the measurement was given up.
        let _ = order.took.send(took);
        Ok(())
    }
}

#[async_trait]
impl Provider for Feed {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        session.set_state(ConnectionState::Open);
        let mut orders = self.orders.lock().await;
        loop {
            let order = tokio::select! {
                () = session.cancelled() => return Ok(()),
                order = orders.recv() => order,
            };
            let Some(order) = order else { return Ok(()) };
            self.carry_out(&session, order).await?;
        }
    }

    async fn send(
        &self,
        _chat: &ChatKey,
        _message: &Outgoing,
        _options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let replies = &self.replies;
        let wanted = replies.wanted.load(Ordering::SeqCst);
        // The moment is written before the count that lets the feed read it, and only near the
        // end: reading the clock takes time.
        if replies.count.load(Ordering::Relaxed) + MOST_THREADS >= wanted {
            let now = u64::try_from(replies.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
            replies.came.fetch_max(now, Ordering::SeqCst);
        }
        if replies.count.fetch_add(1, Ordering::SeqCst) + 1 == wanted {
            replies.arrived.notify_one();
        }
        Ok(Receipt::default())
    }
}
