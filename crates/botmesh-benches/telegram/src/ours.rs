//! A bot of ours.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use botmesh_core::bot::{Coordination, Durability};
use botmesh_core::message::Outgoing;
use botmesh_core::provider::{
    Capabilities, ChoiceLimits, ConnectionState, Provider, ProviderError, Receipt, SendOptions,
    Session,
};
use botmesh_core::{Bot, ChatKey, ProviderId};
use botmesh_redis_store::RedisStore;
use botmesh_telegram::{Recipient, Update, testing};

use crate::meter::{Measured, Meter};
use crate::updates;

/// Reads updates and makes requests as the provider for Telegram does, without a network.
#[derive(Debug)]
struct Raw {
    id: ProviderId,
    recipient: Recipient,
    updates: Vec<String>,
    meter: Arc<Meter>,
}

impl Raw {
    fn failed(&self, reason: impl ToString) -> ProviderError {
        ProviderError::Closed { provider: self.id.clone(), reason: reason.to_string() }
    }
}

#[async_trait]
impl Provider for Raw {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        let mut able = Capabilities::default();
        able.formatting = true;
        able.buttons = Some(ChoiceLimits::NONE);
        able
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        session.set_state(ConnectionState::Open);
        for update in &self.updates {
            let update =
                Update::from_json(update.as_bytes()).map_err(|error| self.failed(error))?;
            let message = update.to_message(&self.recipient);
            session.inbound().deliver(message).await.map_err(|error| self.failed(error))?;
        }
        session.cancelled().await;
        Ok(())
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        _options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        black_box(testing::bodies(chat, message).map_err(|reason| self.failed(reason))?);
        self.meter.reply();
        Ok(Receipt::default())
    }
}

/// Answers all updates, perhaps under turns from a Redis at this address, which perhaps keeps the
/// messages too.
pub(crate) async fn run(
    file: &Path,
    warm: u64,
    redis: Option<&str>,
    is_durable: bool,
) -> Result<Measured> {
    let updates = updates::read(file)?;
    let meter = Arc::new(Meter::new(warm, updates.len() as u64));
    let id = ProviderId::new("telegram")?;
    let recipient = Recipient::new(id.clone(), Some("bench_bot".to_owned()));
    let raw = Raw { id, recipient, updates, meter: Arc::clone(&meter) };
    let mut bot = Bot::new(raw).when("hi", |ctx| async move { ctx.reply("Hello!").await });
    if let Some(redis) = redis {
        // Another run must not take these messages for known ones.
        let prefix = format!("bench-{}", std::process::id());
        let store = RedisStore::connect(redis).prefix(prefix).await?;
        let coordinator = store.coordinator().build()?;
        bot = bot.store(store).coordination(Coordination::new(coordinator));
    }
    if is_durable {
        bot = bot.durability(Durability::inbox_and_outbox());
    }
    let running = bot.start().await.map_err(|error| anyhow!("{error}"))?;
    let measured = meter.measured().await;
    drop(running);
    measured
}
