use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::id::ChatKey;
use crate::message::{Content, Outgoing};
use crate::runtime::Runtime;
use crate::testing::provider::{Listener, TestProvider};

/// One person who chats with the bot.
pub struct User {
    pub(super) connections: Vec<TestProvider>,
    pub(super) on: usize,
    pub(super) chat: ChatKey,
    pub(super) listener: Listener,
    pub(super) pulses: Vec<Pulse>,
}

/// Tells when a replica has nothing more to do.
#[derive(Clone, Default)]
pub(super) struct Pulse(pub(super) Arc<Mutex<Option<Arc<Runtime>>>>);

impl Pulse {
    pub(super) async fn rests(&self) {
        let runtime = self.0.lock().clone();
        if let Some(runtime) = runtime {
            runtime.idle().await;
        }
    }
}

impl User {
    /// From now on writes to this replica.
    pub const fn on(&mut self, replica: usize) -> &mut Self {
        self.on = replica;
        self
    }

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
        if let Err(error) = self.connections[self.on].sends(&self.chat, content).await {
            self.fail(&format!("the bot did not take the message: {error}"));
        }
        self.rested().await
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
            if let Err(error) = self.connections[self.on].says(&self.chat, text).await {
                self.fail(&format!("the bot did not take the message: {error}"));
            }
        }
        self.rested().await
    }

    /// Presses the newest button that says `label`, and waits until the bot has dealt with it.
    ///
    /// # Panics
    /// When there is no such button.
    pub async fn presses(&mut self, label: &str) -> &mut Self {
        if let Err(error) = self.connections[self.on].presses(&self.chat, label).await {
            self.fail(&format!("the button cannot be pressed: {error}"));
        }
        self.rested().await
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

    async fn rested(&mut self) -> &mut Self {
        for pulse in &self.pulses {
            pulse.rests().await;
        }
        self
    }

    fn next(&mut self) -> Option<Outgoing> {
        std::iter::from_fn(|| self.listener.try_next()).find_map(|entry| entry.what.sent().cloned())
    }

    fn fail(&self, what: &str) -> ! {
        let mut chat = String::new();
        for entry in self.connections[0].transcript_of(&self.chat) {
            let _ = writeln!(chat, "  {entry}");
        }
        panic!("{}: {what}\nthe chat so far:\n{chat}", self.chat)
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("chat", &self.chat).finish_non_exhaustive()
    }
}
