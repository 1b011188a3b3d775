//! The process of a bot with durability, which answers each message with its words after a while.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use botmesh_core::bot::Durability;
use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::{Bot, BotError, Event, ProviderId, ReplicaId, RunningBot};
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;
use botmesh_webhook::{Server, ServerHandle, WebhookRouter};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::answers;
use super::store::Store;
use crate::bots::loopback::Loopback;
use crate::bots::notes::Life;
use crate::bots::{SHARED, watched::Turns};
use crate::process;

/// What those who call the webhook have to know.
pub const SECRET: &str = "only-the-platform-knows";

/// The lease of a turn or of a leadership, where the server is not slow.
pub const LEASE: Duration = Duration::from_secs(1);
/// How long a bot tries to start while its server is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a bot is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// The id of the replica.
    pub replica: String,
    /// How it gets its messages.
    pub connection: Connection,
    /// Where it keeps them.
    pub store: Store,
    /// The lease of a turn or of a leadership. A message is left to the replica that took it for
    /// twice as long.
    pub lease: Duration,
    /// How long it works on each.
    pub handling: Duration,
    /// Whether it keeps them at all, so that a test can prove that this is noticed.
    pub is_durable: bool,
    /// The place among its calls to the store, before or behind one, at which it kills itself. It is
    /// then alone with its store.
    pub dies_at: Option<usize>,
}

/// How a bot gets its messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Connection {
    /// It asks the platform.
    Polling {
        /// Where the platform is.
        platform: String,
    },
    /// It is called.
    Webhook {
        /// Where the platform is.
        platform: String,
        /// Where it listens.
        listen: SocketAddr,
    },
    /// It is connected to the platform of a chaos run.
    Loopback {
        /// Where the platform listens.
        port: u16,
        /// Which start of a process this is.
        life: Life,
        /// Whether the platform recognises a send that comes again.
        recognises: bool,
    },
}

impl Orders {
    /// The arguments of the bot's program.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    /// Reads the arguments of a bot's program.
    ///
    /// # Errors
    /// When they are not what a driver gives.
    pub fn read(arguments: &[String]) -> Result<Self> {
        let [orders] = arguments else { bail!("a bot is started by the driver, not by hand") };
        serde_json::from_str(orders).context("orders of another driver")
    }

    /// Runs the bot until it is told to stop or standard input ends.
    ///
    /// # Errors
    /// When it cannot be started within a minute.
    pub async fn obey(self) -> Result<()> {
        let mut stopping = process::told_to_stop()?;
        let deadline = Instant::now() + PATIENCE;
        let (running, server) = loop {
            match self.start().await {
                Ok(started) => break started,
                Err(error) if Instant::now() >= deadline || *stopping.borrow() => {
                    bail!("the bot did not start: {error}");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        running.on(|happened| match happened {
            Event::Error(failed) => eprintln!("{} failed: {}", failed.during, failed.error),
            Event::DeadLetter { chat, error, .. } => eprintln!("{chat} is given up: {error}"),
            _ => {}
        });
        let _ = stopping.wait_for(|stopping| *stopping).await;
        running.stop().await;
        if let Some(server) = server {
            server.stop().await;
        }
        Ok(())
    }

    async fn start(&self) -> Result<(RunningBot, Option<ServerHandle>), BotError> {
        let replica = ReplicaId::new(self.replica.as_str())?;
        let settings = CoordinatorSettings::builder().lease(self.lease).build()?;
        let mut bot = match self.dies_at {
            Some(at) => self.store.deadly(self.connected()?, at).await?,
            None => self.store.of(self.connected()?, replica, settings).await?,
        };
        if self.is_durable {
            bot = bot.durability(Durability::inbox_and_outbox().lease(self.lease * 2));
        }
        let handling = self.handling;
        let bot = bot.fallback(move |ctx| async move {
            tokio::time::sleep(handling).await;
            ctx.reply(answers::to(ctx.text())).await
        });
        let running = bot.start().await?;
        let Connection::Webhook { listen, .. } = self.connection else {
            return Ok((running, None));
        };
        let router = WebhookRouter::new(running.webhooks());
        let server = Server::new(router)?.start(listen).await?;
        Ok((running, Some(server)))
    }

    fn connected(&self) -> Result<Bot, BotError> {
        Ok(match &self.connection {
            Connection::Polling { platform } => {
                Bot::new(Telegram::polling(FakeTelegram::TOKEN).api(platform).build()?)
            }
            Connection::Webhook { platform, .. } => {
                // The test calls, and chooses whom.
                let telegram = Telegram::webhook(FakeTelegram::TOKEN, "https://bot.example");
                let telegram = telegram.api(platform).secret(SECRET).without_registration();
                Bot::new(telegram.build()?)
            }
            Connection::Loopback { port, life, recognises } => {
                let turns = Arc::new(Turns::default());
                let loopback = Loopback::new(ProviderId::new(SHARED)?, *port, *life, turns);
                Bot::new(if *recognises { loopback.recognising() } else { loopback })
            }
        })
    }
}
