use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use botmesh_core::ProviderId;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use teloxide_core::requests::Payload;

use crate::api::{Api, Failure};
use crate::builder::{PollingBuilder, WebhookBuilder};
use crate::error::CallError;
use crate::pace::Pace;
use crate::polling::Polling;
use crate::slot::Slot;
use crate::webhook::Registration;

/// How many groups that became supergroups are remembered.
const REMEMBERED_MOVES: usize = 10_000;

/// A bot on Telegram. Clones share the connection: give one to [`Bot`](botmesh_core::Bot) and keep
/// one for what only Telegram has.
///
/// ```no_run
/// use botmesh_core::prelude::*;
/// use botmesh_telegram::Telegram;
///
/// # async fn run() -> Result<(), BotError> {
/// let telegram = Telegram::polling(std::env::var("TELEGRAM_TOKEN")?).build()?;
/// Bot::new(telegram).when("hi", |ctx| async move { ctx.reply("Hello!").await }).run().await
/// # }
/// ```
#[derive(Clone)]
pub struct Telegram {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) id: ProviderId,
    pub(crate) api: Api,
    pub(crate) pace: Pace,
    pub(crate) longest_wait: Duration,
    pub(crate) mode: Mode,
    moves: Mutex<HashMap<i64, i64>>,
}

/// How updates come.
#[derive(Debug)]
pub(crate) enum Mode {
    Polling(Polling),
    Webhook(Box<Registration>, Slot),
}

impl Telegram {
    /// Asks Telegram for updates: needs no address of your own. One process at a time may do so;
    /// with coordination that is the leader.
    pub fn polling(token: impl Into<String>) -> PollingBuilder {
        PollingBuilder::new(token.into())
    }

    /// Lets Telegram call at `address`, which all replicas can share behind a load balancer, such as
    /// `https://bot.example.org`.
    pub fn webhook(token: impl Into<String>, address: impl Into<String>) -> WebhookBuilder {
        WebhookBuilder::new(token.into(), address.into())
    }

    pub(crate) fn assemble(id: ProviderId, api: Api, longest_wait: Duration, mode: Mode) -> Self {
        let pace = Pace::default();
        let moves = Mutex::default();
        Self { inner: Arc::new(Inner { id, api, pace, longest_wait, mode, moves }) }
    }

    /// Calls any method of the Bot API that sends no file, with the types of
    /// [`teloxide_core::payloads`].
    ///
    /// ```no_run
    /// use botmesh_telegram::{CallError, Telegram};
    /// use teloxide_core::payloads::SetMyCommands;
    /// use teloxide_core::types::BotCommand;
    ///
    /// # async fn announce(telegram: Telegram) -> Result<(), CallError> {
    /// telegram.call(&SetMyCommands::new([BotCommand::new("start", "Begin")])).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CallError`]. A 429 is told and not waited for.
    pub async fn call<P>(&self, payload: &P) -> Result<P::Output, CallError>
    where
        P: Payload + Serialize + Sync,
        P::Output: DeserializeOwned,
    {
        let result = self
            .inner
            .call(payload)
            .await
            .map_err(|failure| CallError::Provider(failure.into_error(&self.inner.id)))?;
        serde_json::from_str(result.get()).map_err(CallError::Answer)
    }
}

impl Inner {
    pub(crate) async fn call<P>(&self, payload: &P) -> Result<Box<RawValue>, Failure>
    where
        P: Payload + Serialize + Sync,
    {
        self.api.call(payload).await
    }

    /// The id that the chat has now.
    pub(crate) fn present(&self, chat: i64) -> i64 {
        self.moves.lock().get(&chat).copied().unwrap_or(chat)
    }

    /// A group became a supergroup, which has another id.
    pub(crate) fn moved(&self, from: i64, to: i64) {
        let mut moves = self.moves.lock();
        if moves.len() >= REMEMBERED_MOVES {
            // They are told again by the next send to the old id.
            moves.clear();
        }
        moves.insert(from, to);
    }
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram")
            .field("id", &self.inner.id)
            .field("api", &self.inner.api)
            .field("mode", &self.inner.mode)
            .finish_non_exhaustive()
    }
}
