//! A layer that keeps one chat from taking all the bot's time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::prelude::*;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Chats whose messages are counted; when there are more, those that fell silent are forgotten.
const COUNTED: usize = 10_000;

/// How many messages of one chat are taken in how much time.
#[derive(Clone)]
pub(super) struct Pace {
    most: u32,
    within: Duration,
    windows: Arc<Mutex<HashMap<ChatKey, Window>>>,
}

#[derive(Clone, Copy)]
struct Window {
    begun: Instant,
    messages: u32,
}

impl Pace {
    pub(super) fn new(most: u32, within: Duration) -> Self {
        Self { most, within, windows: Arc::default() }
    }

    /// Lets a message through, or says once that it is too much.
    pub(super) async fn keep(self, ctx: Context, next: Next) -> Result<(), BotError> {
        let count = self.count(ctx.chat());
        if count <= self.most {
            return next.run(ctx).await;
        }
        if count == self.most + 1 {
            ctx.reply(t("shop.too-fast")).await?;
        }
        Ok(())
    }

    /// Counts a message of `chat`; returns how many it has in this window.
    fn count(&self, chat: &ChatKey) -> u32 {
        let now = Instant::now();
        let mut windows = self.windows.lock();
        if windows.len() > COUNTED {
            windows.retain(|_, window| now - window.begun < self.within);
        }
        let window = windows.entry(chat.clone()).or_insert(Window { begun: now, messages: 0 });
        if now - window.begun >= self.within {
            *window = Window { begun: now, messages: 0 };
        }
        window.messages = window.messages.saturating_add(1);
        window.messages
    }
}
