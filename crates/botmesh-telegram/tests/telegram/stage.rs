//! A bot on the platform.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::provider::ConnectionState;
use botmesh_core::{Bot, Event, Message, RunningBot};
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A bot that answers what it is told, and everything that it was given.
pub(crate) struct Stage {
    pub(crate) platform: FakeTelegram,
    pub(crate) bot: RunningBot,
    pub(crate) given: watch::Receiver<Vec<Message>>,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl Stage {
    pub(crate) async fn polling() -> Self {
        let platform = FakeTelegram::start().await.unwrap();
        let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
        Self::open(platform, telegram.build().unwrap(), |bot| bot).await
    }

    pub(crate) async fn open(
        platform: FakeTelegram,
        telegram: Telegram,
        define: impl FnOnce(Bot) -> Bot,
    ) -> Self {
        let (given, all) = watch::channel(Vec::new());
        let given = Arc::new(given);
        let bot = define(Bot::new(telegram))
            .layer(move |ctx, next| {
                let given = Arc::clone(&given);
                async move {
                    given.send_modify(|all| all.push(ctx.message().clone()));
                    next.run(ctx).await
                }
            })
            .fallback(|ctx| async move { ctx.reply(format!("you said {}", ctx.text())).await });
        let bot = bot.start().await.unwrap();
        let events = Arc::<Mutex<Vec<Event>>>::default();
        let kept = Arc::clone(&events);
        bot.on(move |event| kept.lock().push(event));
        tokio::time::timeout(PATIENCE, bot.ready()).await.unwrap();
        Self { platform, bot, given: all, events }
    }

    /// Waits until the bot was given this many messages.
    pub(crate) async fn is_given(&self, count: usize) -> Vec<Message> {
        let mut given = self.given.clone();
        let enough = given.wait_for(|all| all.len() >= count);
        match tokio::time::timeout(PATIENCE, enough).await {
            Ok(given) => given.unwrap().clone(),
            Err(_) => panic!("the bot was given only {:?}", self.given.borrow()),
        }
    }

    /// The errors that were told, in words.
    pub(crate) fn errors(&self) -> Vec<String> {
        let events = self.events.lock();
        let errors = events.iter().filter_map(|event| match event {
            Event::Error(failed) => Some(format!("{}: {}", failed.during, failed.error)),
            _ => None,
        });
        errors.collect()
    }

    /// Waits for what `found` finds.
    pub(crate) async fn eventually(&self, what: &str, found: impl Fn(&Self) -> bool) {
        let begun = std::time::Instant::now();
        while !found(self) {
            assert!(begun.elapsed() < PATIENCE, "{what}: not in time; errors {:?}", self.errors());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn is(&self, state: ConnectionState) -> bool {
        self.bot.health().providers[0].state == state
    }
}
