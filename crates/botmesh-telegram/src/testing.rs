//! A Bot API on loopback (feature `testing`), to try bots on Telegram without Telegram.
//!
//! It speaks the format that <https://core.telegram.org/bots/api> documents, keeps the documented
//! limits, and fails on request. A test plays the users.

mod answer;
mod calls;
mod chat;
mod fault;
mod method;
mod polls;
mod pushes;
mod requests;
mod server;
mod state;

pub use calls::Call;
pub use chat::FakeChat;
pub use fault::Fault;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use botmesh_core::message::Outgoing;
use botmesh_core::{ChatKey, Message};
use serde_json::{Value, json};

use crate::address::Address;
use crate::api::Answer;
use crate::polling::batch;
use crate::token::Token;
use crate::{Recipient, send};
use server::Server;
use state::State;

/// What a send of this message would post: the body of each call in its order. It is for benches,
/// and for those who carry the calls themselves; a file that would be sent along is left out.
///
/// # Errors
/// Why Telegram would refuse the message, in words.
pub fn bodies(chat: &ChatKey, message: &Outgoing) -> Result<Vec<Vec<u8>>, String> {
    let to = Address::of(chat).ok_or_else(|| format!("{chat} is not a chat of Telegram"))?;
    let calls = send::plan(&to, message)?;
    let bodies = calls.iter().map(|call| serde_json::to_vec(call.fields()));
    bodies.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// The messages in an answer to `getUpdates`, as polling takes them out of it. It is for tests of what
/// a server may answer; updates that cannot be read are left out.
///
/// # Errors
/// Why it is no answer with updates, in words.
pub fn messages(answer: &[u8], to: &Recipient) -> Result<Vec<Message>, String> {
    let token = Token::new(FakeTelegram::TOKEN).map_err(|error| error.to_string())?;
    let updates = Answer::result(answer, &token).map_err(|failure| failure.to_string())?;
    let read = batch::read(updates).ok_or_else(|| "the result is no list".to_owned())?;
    Ok(batch::parcels(read.updates, to).into_iter().map(|parcel| parcel.message).collect())
}

/// The Bot API for one bot, with the token [`TOKEN`](Self::TOKEN) and the name `fake_bot`. Clones
/// share everything; with the last one it ends.
///
/// ```
/// use botmesh_core::prelude::*;
/// use botmesh_telegram::Telegram;
/// use botmesh_telegram::testing::FakeTelegram;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BotError> {
/// let platform = FakeTelegram::start().await?;
/// let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address()).build()?;
/// let bot = Bot::new(telegram)
///     .when("hi", |ctx| async move { ctx.reply("Hello!").await })
///     .start()
///     .await?;
///
/// let ana = platform.private(42);
/// ana.says("hi");
/// assert_eq!(ana.hears(0).await.text(), "Hello!");
/// # drop(bot);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FakeTelegram {
    state: Arc<State>,
    server: Arc<Server>,
}

impl FakeTelegram {
    /// The token of the bot.
    pub const TOKEN: &str = "123456789:AAFakeTokenThatNobodyMaySee-_0123456";

    /// Listens at a free port of this machine.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> std::io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens at this address.
    ///
    /// # Errors
    /// When it is in use.
    pub async fn start_at(address: SocketAddr) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let server = Arc::new(Server::start(address, Arc::clone(&state)).await?);
        Ok(Self { state, server })
    }

    /// The address, for [`api`](crate::PollingBuilder::api).
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The private chat with the user of this number.
    pub fn private(&self, user: i64) -> FakeChat {
        FakeChat::private(self.clone(), user)
    }

    /// A supergroup in which the user of this number writes.
    pub fn group(&self, group: i64, user: i64) -> FakeChat {
        FakeChat::group(self.clone(), group, user)
    }

    /// Delivers an update with these fields and the next number, which is returned.
    pub fn delivers(&self, update: Value) -> i64 {
        self.state.queue(update)
    }

    /// Delivers the last update once more, under its old number.
    pub fn repeats(&self) {
        self.state.repeat();
    }

    /// Fails the next call of this method, or with `*` of any that sends, in this way.
    pub fn fails(&self, method: &str, fault: Fault) {
        self.state.fail(method, fault);
    }

    /// Closes every connection; the next is accepted.
    pub fn cuts(&self) {
        self.server.cut();
    }

    /// All calls that were taken, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state.calls()
    }

    /// How many updates the bot has taken: confirmed by an offset, or answered with success.
    #[must_use]
    pub fn acknowledged(&self) -> usize {
        self.state.acknowledged()
    }

    /// How often a question for updates came while another was open, which two pollers make happen.
    #[must_use]
    pub fn overlaps(&self) -> usize {
        self.state.overlaps()
    }

    /// The address that is called, if one is set.
    #[must_use]
    pub fn webhook(&self) -> Option<String> {
        self.state.webhook()
    }

    /// Dates what users write from now on, in seconds since 1970, whatever time it is.
    pub fn dates(&self, seconds: u64) {
        self.state.set_date(seconds);
    }

    /// What a user's file consists of when it is downloaded.
    pub fn serves_file(&self, bytes: impl Into<Vec<u8>>) {
        self.state.set_file(bytes.into());
    }

    fn me() -> Value {
        json!({
            "id": 123_456_789,
            "is_bot": true,
            "first_name": "Fake",
            "username": "fake_bot",
            "can_join_groups": true,
            "can_read_all_group_messages": false,
            "supports_inline_queries": false,
            "can_connect_to_business": false,
            "has_main_web_app": false,
        })
    }
}

impl fmt::Debug for FakeTelegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTelegram").field("address", &self.address()).finish_non_exhaustive()
    }
}
