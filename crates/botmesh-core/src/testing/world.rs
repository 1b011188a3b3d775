//! A bot with its users, for tests that read like a chat.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::provider::{Listener, TestProvider};
use crate::bot::{Bot, RunningBot};
use crate::id::ChatKey;
use crate::message::{Content, Outgoing};
use crate::runtime::{Event, Runtime};
use crate::store::MemoryStore;

/// A bot on a [`TestProvider`] and a [`MemoryStore`], which outlive it: the bot can crash and be
/// started again. Use it under paused time (`#[tokio::test(start_paused = true)]`).
///
/// ```
/// use botmesh_core::prelude::*;
/// use botmesh_core::testing::World;
///
/// fn my_bot(bot: Bot) -> Bot {
///     bot.when("hi", |ctx| async move { ctx.reply("Hello!").await })
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let world = World::new(my_bot).await;
/// let mut ana = world.user("ana");
/// ana.says("hi").await.hears("Hello!").hears_nothing();
/// # }
/// ```
pub struct World {
    platform: TestProvider,
    store: MemoryStore,
    define: Box<dyn Fn(Bot) -> Bot>,
    running: Option<(RunningBot, broadcast::Receiver<Event>)>,
    pulse: Pulse,
}

/// One person who chats with the bot.
pub struct User {
    platform: TestProvider,
    chat: ChatKey,
    listener: Listener,
    pulse: Pulse,
}

/// Tells when the bot has nothing more to do.
#[derive(Clone, Default)]
struct Pulse(Arc<Mutex<Option<Arc<Runtime>>>>);

impl Pulse {
    async fn rests(&self) {
        let runtime = self.0.lock().clone();
        if let Some(runtime) = runtime {
            runtime.idle().await;
        }
    }
}

impl World {
    /// A world with the bot that `define` makes of a fresh definition.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn new(define: impl Fn(Bot) -> Bot + 'static) -> Self {
        Self::on(TestProvider::new(), define).await
    }

    /// Like [`new`](Self::new), on a platform that was made ready before.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn on(platform: TestProvider, define: impl Fn(Bot) -> Bot + 'static) -> Self {
        let mut world = Self {
            platform,
            store: MemoryStore::new(),
            define: Box::new(define),
            running: None,
            pulse: Pulse::default(),
        };
        world.restart().await;
        world
    }

    /// The platform, to script its faults and read its transcript.
    #[must_use]
    pub const fn platform(&self) -> &TestProvider {
        &self.platform
    }

    /// The store of the bot.
    #[must_use]
    pub const fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// The person with this name.
    #[must_use]
    pub fn user(&self, name: &str) -> User {
        let chat = self.platform.chat(name);
        let listener = self.platform.listen(&chat);
        let pulse = self.pulse.clone();
        User { platform: self.platform.clone(), chat, listener, pulse }
    }

    /// Ends the bot where it stands, as `kill -9` would: what it had only in memory is gone.
    pub fn crash(&mut self) {
        *self.pulse.0.lock() = None;
        drop(self.running.take());
    }

    /// Stops the bot in order; returns how many messages were left unhandled.
    pub async fn stop(&mut self) -> usize {
        *self.pulse.0.lock() = None;
        match self.running.take() {
            Some((running, _)) => running.stop().await,
            None => 0,
        }
    }

    /// Starts the bot again, after a crash or a stop.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn restart(&mut self) {
        self.crash();
        let bot = (self.define)(Bot::new(self.platform.clone()).store(self.store.clone()));
        match bot.start().await {
            Ok(running) => {
                *self.pulse.0.lock() = Some(running.runtime());
                running.ready().await;
                let events = running.events();
                self.running = Some((running, events));
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Lets this much time pass, with everything that is due in it.
    pub async fn advance(&self, time: Duration) {
        // One more millisecond, the grain of the clock: what is due at the end has then begun.
        tokio::time::sleep(time + Duration::from_millis(1)).await;
        self.pulse.rests().await;
    }

    /// Waits until the bot has nothing more to do.
    pub async fn rests(&self) {
        self.pulse.rests().await;
    }

    /// The events since the last call or the last start, in order.
    pub fn events(&mut self) -> Vec<Event> {
        let Some((_, events)) = &mut self.running else { return Vec::new() };
        std::iter::from_fn(|| events.try_recv().ok()).collect()
    }

    /// What failed since the last call or the last start. Other events are passed over.
    pub fn errors(&mut self) -> Vec<String> {
        let events = self.events().into_iter();
        let errors = events.filter_map(|event| match event {
            Event::Error(error) => Some(format!("{}: {}", error.during, error.error)),
            _ => None,
        });
        errors.collect()
    }
}

impl User {
    /// The chat of this person.
    #[must_use]
    pub const fn chat(&self) -> &ChatKey {
        &self.chat
    }

    /// Says something, and waits until the bot has dealt with it.
    ///
    /// # Panics
    /// When the bot does not take it.
    pub async fn says(&mut self, text: impl Into<String>) -> &mut Self {
        self.sends(Content::Text(text.into())).await
    }

    /// Sends something of any kind, and waits until the bot has dealt with it.
    ///
    /// # Panics
    /// When the bot does not take it.
    pub async fn sends(&mut self, content: Content) -> &mut Self {
        if let Err(error) = self.platform.sends(&self.chat, content).await {
            self.fail(&format!("the bot did not take the message: {error}"));
        }
        self.pulse.rests().await;
        self
    }

    /// Says all of these at once, and waits until the bot has dealt with them.
    ///
    /// # Panics
    /// When the bot does not take one.
    pub async fn says_at_once<T: Into<String>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        for text in texts {
            if let Err(error) = self.platform.says(&self.chat, text).await {
                self.fail(&format!("the bot did not take the message: {error}"));
            }
        }
        self.pulse.rests().await;
        self
    }

    /// Presses the newest button that says `label`, and waits until the bot has dealt with it.
    ///
    /// # Panics
    /// When there is no such button.
    pub async fn presses(&mut self, label: &str) -> &mut Self {
        if let Err(error) = self.platform.presses(&self.chat, label).await {
            self.fail(&format!("the button cannot be pressed: {error}"));
        }
        self.pulse.rests().await;
        self
    }

    /// The next message that the bot has sent says exactly `expected`.
    ///
    /// # Panics
    /// When it says something else, or there is none.
    pub fn hears(&mut self, expected: &str) -> &mut Self {
        match self.next() {
            Some(message) if message.text == expected => self,
            Some(message) => {
                self.fail(&format!("expected to hear {expected:?}, heard {:?}", message.text))
            }
            None => self.fail(&format!("expected to hear {expected:?}, heard nothing")),
        }
    }

    /// The next message that the bot has sent, whatever it says.
    ///
    /// # Panics
    /// When there is none.
    pub fn hears_something(&mut self) -> Outgoing {
        match self.next() {
            Some(message) => message,
            None => self.fail("expected to hear something, heard nothing"),
        }
    }

    /// The bot has sent nothing that was not heard yet.
    ///
    /// # Panics
    /// When it has.
    pub fn hears_nothing(&mut self) -> &mut Self {
        match self.next() {
            None => self,
            Some(message) => {
                self.fail(&format!("expected to hear nothing, heard {:?}", message.text))
            }
        }
    }

    fn next(&mut self) -> Option<Outgoing> {
        std::iter::from_fn(|| self.listener.try_next()).find_map(|entry| entry.what.sent().cloned())
    }

    fn fail(&self, what: &str) -> ! {
        let mut chat = String::new();
        for entry in self.platform.transcript_of(&self.chat) {
            let _ = writeln!(chat, "  {entry}");
        }
        panic!("{}: {what}\nthe chat so far:\n{chat}", self.chat)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("platform", &self.platform).finish_non_exhaustive()
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("chat", &self.chat).finish_non_exhaustive()
    }
}
