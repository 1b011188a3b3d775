use anyhow::{Result, anyhow};
use botmesh_core::bot::{RunningBot, enter};
use botmesh_core::{Bot, flow};
use botmesh_sqlite_store::SqliteStore;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{Driver, Feed};

/// What the bot does with each message; it always answers once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// A handler replies.
    Handler,
    /// A handler counts the user's visits in the memory store and replies.
    UserState,
    /// A flow reads the answer and asks the next question.
    Flow,
    /// The same with a persistent flow on SQLite: two checkpoints are written for each answer.
    PersistentFlow,
    /// An asynchronous function reads the answer and asks the next question.
    Conversation,
}

/// A running bot and the platform that it answers.
#[derive(Debug)]
pub struct Bench {
    /// Delivers messages to the bot.
    pub driver: Driver,
    running: RunningBot,
    _directory: Option<TempDir>,
}

#[derive(Default, Serialize, Deserialize)]
struct Visits {
    count: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Order {
    item: String,
    answers: u64,
}

impl Workload {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 5] =
        [Self::Handler, Self::UserState, Self::Flow, Self::PersistentFlow, Self::Conversation];

    /// Its name, on the command line too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::UserState => "user-state",
            Self::Flow => "flow",
            Self::PersistentFlow => "persistent-flow",
            Self::Conversation => "conversation",
        }
    }

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// How many messages a measurement takes: enough to last about half a second.
    #[must_use]
    pub const fn messages(self) -> u64 {
        match self {
            Self::Handler => 300_000,
            Self::UserState | Self::Flow | Self::Conversation => 200_000,
            Self::PersistentFlow => 10_000,
        }
    }

    /// Starts a bot for this work on a platform with this many chats.
    ///
    /// # Errors
    /// When the bot or its store cannot be started.
    pub async fn start(self, chats: u64) -> Result<Bench> {
        let (feed, driver) = Feed::new(chats)?;
        // A single chat may have all messages waiting; how many are in work is limited as always.
        let mut bot = Bot::new(feed).max_waiting_per_chat(usize::MAX);
        let mut directory = None;
        if self == Self::PersistentFlow {
            let made = tempfile::tempdir()?;
            bot = bot.store(SqliteStore::open(made.path().join("bot.db")).await?);
            directory = Some(made);
        }
        let running = self.define(bot).start().await.map_err(|error| anyhow!("{error}"))?;
        running.ready().await;
        Ok(Bench { driver, running, _directory: directory })
    }

    /// Gives a bot what answers the messages.
    pub(crate) fn define(self, bot: Bot) -> Bot {
        match self {
            Self::Handler => bot.when("hi", |ctx| async move { ctx.reply("Hello!").await }),
            Self::UserState => bot.when("hi", |ctx| async move {
                let visits = ctx.update_user(|visits: &mut Visits| visits.count += 1).await?;
                ctx.reply(if visits.count == 1 { "Welcome!" } else { "Welcome back!" }).await
            }),
            Self::Flow => bot.flow(orders()),
            Self::PersistentFlow => bot.flow(orders().persistent()),
            Self::Conversation => {
                bot.when("hi", enter("orders")).conversation("orders", |c| async move {
                    let mut order = Order::default();
                    loop {
                        order.item = c.ask("What would you like?").await?.text()?;
                        order.answers += 1;
                        if order.answers == u64::MAX {
                            return Ok(());
                        }
                    }
                })
            }
        }
    }
}

impl Bench {
    /// Waits until everything that was delivered has been handled.
    pub async fn idle(&self) {
        self.running.idle().await;
    }

    /// Ends the bot in order.
    pub async fn stop(self) {
        self.running.stop().await;
    }
}

fn orders() -> botmesh_core::Flow<Order> {
    flow("orders")
        .enter_on("hi")
        .label("next")
        .ask("What would you like?", |order: &mut Order, answer| {
            order.item = answer.text()?;
            order.answers += 1;
            Ok(())
        })
        .goto("next")
}
