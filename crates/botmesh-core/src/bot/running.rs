use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use super::health::Health;
use super::webhooks::Webhooks;
use crate::error::BotError;
use crate::id::ChatKey;
use crate::message::Reply;
use crate::provider::{ConnectionState, Receipt, SendError, SendOptions};
use crate::runtime::{Event, Runtime, Supervisor};
use crate::text::Language;

/// A bot that runs. Dropping it ends everything where it stands; [`stop`](Self::stop) ends it in
/// order.
#[must_use = "a bot ends when this is dropped: await `until_signal` or `stop`"]
pub struct RunningBot {
    pub(super) runtime: Arc<Runtime>,
    supervisor: Option<Supervisor>,
    patience: Duration,
}

impl RunningBot {
    pub(super) fn new(runtime: Arc<Runtime>, supervisor: Supervisor, patience: Duration) -> Self {
        Self { runtime, supervisor: Some(supervisor), patience }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        Arc::clone(&self.runtime)
    }

    /// What happens from now on. Read it steadily: of more than 1,024 unread events the oldest are
    /// dropped.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.runtime.events().subscribe()
    }

    /// Calls `listener` with each event, in a task of its own that ends with the bot.
    pub fn on(&self, mut listener: impl FnMut(Event) + Send + 'static) {
        let mut events = self.events();
        tokio::spawn(async move {
            loop {
                match events.recv().await {
                    Ok(event) => listener(event),
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        listener(Event::Missed(missed));
                    }
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        });
    }

    /// Sends to a chat outside any turn, as for a notice that nobody asked for. It is not ordered
    /// with the replies of a handler that runs at the same time.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send(
        &self,
        chat: &ChatKey,
        reply: impl Into<Reply>,
        language: Option<&Language>,
    ) -> Result<Receipt, SendError> {
        self.runtime.sender().deliver(chat, reply.into(), language, &SendOptions::default()).await
    }

    /// As [`send`](Self::send), with a key that tells the platform that it is the same send when
    /// it comes again: after a restart, say, or from another replica. A platform that knows such
    /// keys ([`idempotent_send`](crate::provider::Capabilities::idempotent_send)) makes it once;
    /// others ignore the key, and send again.
    ///
    /// The platform is given the key as it is. Use another one for each chat.
    ///
    /// ```
    /// # use botmesh_core::prelude::*;
    /// # use botmesh_core::{ChatKey, RunningBot};
    /// # async fn tell(running: &RunningBot, chat: &ChatKey, order: u32) -> Result<(), BotError> {
    /// let key = format!("order-{order}-sent");
    /// running.send_once(key, chat, "Your order is on its way.", None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_once(
        &self,
        key: impl Into<String>,
        chat: &ChatKey,
        reply: impl Into<Reply>,
        language: Option<&Language>,
    ) -> Result<Receipt, SendError> {
        let options = SendOptions { idempotency_key: Some(key.into()), timeout: None };
        self.runtime.sender().deliver(chat, reply.into(), language, &options).await
    }

    /// Waits until every provider is connected.
    pub async fn ready(&self) {
        let Some(supervisor) = &self.supervisor else { return };
        for (_, state) in supervisor.states() {
            let mut state = state.clone();
            // An ended provider never becomes ready, and the caller is to wait no longer.
            let _ = state.wait_for(|state| *state != ConnectionState::Connecting).await;
        }
    }

    /// What a web server needs to take the webhooks of this bot's providers.
    #[must_use]
    pub fn webhooks(&self) -> Webhooks {
        Webhooks::new(Arc::clone(&self.runtime), self.supervisor.as_ref())
    }

    /// How the bot is: whether it is connected, leads or waits to.
    #[must_use]
    pub fn health(&self) -> Health {
        self.webhooks().health()
    }

    /// Waits until everything that was accepted so far has been handled.
    pub async fn idle(&self) {
        self.runtime.idle().await;
    }

    /// Waits until all providers have ended or the process is told to stop (Ctrl-C, SIGTERM), then
    /// stops in order.
    ///
    /// # Errors
    /// When the process cannot listen for signals.
    pub async fn until_signal(mut self) -> Result<(), BotError> {
        let Some(supervisor) = &mut self.supervisor else { return Ok(()) };
        tokio::select! {
            () = supervisor.ended() => {}
            told = told_to_stop() => told?,
        }
        self.stop().await;
        Ok(())
    }

    /// Stops in order: takes no more messages, lets those that were accepted be handled for as
    /// long as [`Bot::stop_timeout`](crate::Bot::stop_timeout) says, then closes the transports.
    /// Returns how many messages were left unhandled. Checkpoints stay.
    pub async fn stop(mut self) -> usize {
        match self.supervisor.take() {
            Some(supervisor) => supervisor.stop(self.patience).await,
            None => 0,
        }
    }
}

impl Drop for RunningBot {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.crash();
        }
    }
}

impl fmt::Debug for RunningBot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningBot").finish_non_exhaustive()
    }
}

async fn told_to_stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            told = tokio::signal::ctrl_c() => told,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
