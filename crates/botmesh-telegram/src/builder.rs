use std::time::Duration;

use botmesh_core::ProviderId;
use botmesh_core::provider::Secret;
use reqwest::Url;

use crate::SettingsError;
use crate::api::Api;
use crate::polling::Polling;
use crate::slot::Slot;
use crate::telegram::{Mode, Telegram};
use crate::token::Token;
use crate::webhook::Registration;

const API: &str = "https://api.telegram.org";

/// What both ways to receive have in common.
struct Common {
    token: Secret,
    id: String,
    api: String,
    longest_wait: Duration,
    also: Vec<String>,
}

/// Makes a [`Telegram`] that asks for updates.
#[must_use]
pub struct PollingBuilder {
    common: Common,
    poll: Duration,
    delete_webhook: bool,
}

/// Makes a [`Telegram`] that is called.
#[must_use]
pub struct WebhookBuilder {
    common: Common,
    address: String,
    path: Option<String>,
    secret: Option<Secret>,
    connections: u8,
    register: bool,
}

macro_rules! common_settings {
    () => {
        /// The id that is part of every chat key; `telegram` by default. Two bots of one program
        /// need two ids.
        pub fn id(mut self, id: impl Into<String>) -> Self {
            self.common.id = id.into();
            self
        }

        /// The Bot API server; `https://api.telegram.org` by default.
        pub fn api(mut self, address: impl Into<String>) -> Self {
            self.common.api = address.into();
            self
        }

        /// How long a send waits when Telegram wants fewer; beyond it the send fails with
        /// [`RateLimited`](botmesh_core::provider::ProviderError::RateLimited). Default 30 s.
        pub const fn longest_wait(mut self, wait: Duration) -> Self {
            self.common.longest_wait = wait;
            self
        }

        /// Receives kinds of updates that Telegram leaves out by default: `chat_member`,
        /// `message_reaction` and `message_reaction_count`.
        pub fn also_receive<S: Into<String>>(mut self, kinds: impl IntoIterator<Item = S>) -> Self {
            self.common.also.extend(kinds.into_iter().map(Into::into));
            self
        }
    };
}

impl PollingBuilder {
    pub(crate) fn new(token: String) -> Self {
        Self { common: Common::new(token), poll: Duration::from_secs(25), delete_webhook: false }
    }

    common_settings!();

    /// How long Telegram keeps a question for updates open; at most 50 s, 25 s by default. With
    /// coordination it is shortened to what is left of the leader's lease.
    pub const fn poll_time(mut self, time: Duration) -> Self {
        self.poll = time;
        self
    }

    /// Removes a webhook that is set for the bot when polling begins. Without it such a webhook is
    /// an error: it may belong to a bot in production.
    pub const fn delete_webhook(mut self) -> Self {
        self.delete_webhook = true;
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn build(self) -> Result<Telegram, SettingsError> {
        let seconds = in_range("poll_time", self.poll.as_secs(), 1, 50)?;
        let updates = self.common.updates();
        let mode = Polling::new(Duration::from_secs(seconds), updates, self.delete_webhook);
        self.common.build(Mode::Polling(mode))
    }
}

impl WebhookBuilder {
    pub(crate) fn new(token: String, address: String) -> Self {
        Self {
            common: Common::new(token),
            address,
            path: None,
            secret: None,
            connections: 40,
            register: true,
        }
    }

    common_settings!();

    /// The path below the address at which Telegram calls; `/` and the id by default.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The secret that Telegram sends with each call; by default one that follows from the token,
    /// the same on all replicas.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(Secret::new(secret.into()));
        self
    }

    /// How many calls Telegram makes at a time, 1 to 100; 40 by default. With more than one, two
    /// messages of a chat that were written at the same moment may arrive in either order.
    pub const fn connections(mut self, connections: u8) -> Self {
        self.connections = connections;
        self
    }

    /// Leaves it to you to tell Telegram the address, with `setWebhook`.
    pub const fn without_registration(mut self) -> Self {
        self.register = false;
        self
    }

    /// The provider.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn build(self) -> Result<Telegram, SettingsError> {
        in_range("connections", self.connections.into(), 1, 100)?;
        let token = Token::new(self.common.token.reveal())?;
        let secret = self.secret.unwrap_or_else(|| token.webhook_secret());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let text = secret.reveal();
        if text.is_empty() || text.len() > 256 || !text.chars().all(plain) {
            return Err(SettingsError::WebhookSecret);
        }
        let path = self.path.unwrap_or_else(|| format!("/{}", self.common.id));
        let address = Url::parse(&format!("{}{path}", self.address.trim_end_matches('/')))
            .ok()
            .filter(|url| url.scheme() == "https" || url.scheme() == "http")
            .filter(|url| url.has_host() && url.query().is_none() && url.fragment().is_none())
            .filter(|_| path.starts_with('/') && path.len() > 1)
            .ok_or(SettingsError::WebhookAddress { address: self.address })?;
        let updates = self.common.updates();
        let registration =
            Registration::new(address, path, secret, self.connections, updates, self.register);
        self.common.build(Mode::Webhook(Box::new(registration), Slot::default()))
    }
}

impl Common {
    fn new(token: String) -> Self {
        Self {
            token: Secret::new(token),
            id: "telegram".to_owned(),
            api: API.to_owned(),
            longest_wait: Duration::from_secs(30),
            also: Vec::new(),
        }
    }

    /// The kinds of updates to ask for. Empty is Telegram's word for its default, so whoever wants
    /// one more has to name all.
    fn updates(&self) -> Vec<String> {
        const DEFAULT: [&str; 20] = [
            "message",
            "edited_message",
            "channel_post",
            "edited_channel_post",
            "business_connection",
            "business_message",
            "edited_business_message",
            "deleted_business_messages",
            "inline_query",
            "chosen_inline_result",
            "callback_query",
            "shipping_query",
            "pre_checkout_query",
            "purchased_paid_media",
            "poll",
            "poll_answer",
            "my_chat_member",
            "chat_join_request",
            "chat_boost",
            "removed_chat_boost",
        ];
        if self.also.is_empty() {
            return Vec::new();
        }
        let mut all: Vec<String> = DEFAULT.map(str::to_owned).into();
        all.extend(self.also.iter().filter(|kind| !DEFAULT.contains(&kind.as_str())).cloned());
        all
    }

    fn build(self, mode: Mode) -> Result<Telegram, SettingsError> {
        let token = Token::new(self.token.reveal())?;
        let id = ProviderId::new(self.id)?;
        let base = Url::parse(&self.api)
            .ok()
            .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            .ok_or_else(|| SettingsError::ApiAddress {
                address: self.api.rsplit('@').next().unwrap_or_default().to_owned(),
            })?;
        Ok(Telegram::assemble(id, Api::new(token, base)?, self.longest_wait, mode))
    }
}

fn in_range(
    setting: &'static str,
    value: u64,
    least: u64,
    most: u64,
) -> Result<u64, SettingsError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(SettingsError::OutOfRange { setting, least, most })
    }
}

impl std::fmt::Debug for PollingBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PollingBuilder").field("id", &self.common.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WebhookBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookBuilder").field("id", &self.common.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "123:secret-part";

    /// A14, I7: settings that cannot work are told when the provider is made, and none of it shows
    /// the token.
    #[test]
    fn settings_that_cannot_work_are_told_at_once() {
        let polling = || Telegram::polling(TOKEN);
        let errors = [
            Telegram::polling("nonsense").build().unwrap_err(),
            polling().id("Has Spaces").build().unwrap_err(),
            polling().api("not an address").build().unwrap_err(),
            polling().poll_time(Duration::from_secs(51)).build().unwrap_err(),
            Telegram::webhook(TOKEN, "bot.example.org").build().unwrap_err(),
            Telegram::webhook(TOKEN, "https://bot.example.org?x=1").build().unwrap_err(),
            Telegram::webhook(TOKEN, "https://b.example").path("none").build().unwrap_err(),
            Telegram::webhook(TOKEN, "https://b.example").secret("no spaces").build().unwrap_err(),
            Telegram::webhook(TOKEN, "https://b.example").connections(0).build().unwrap_err(),
        ];
        for error in errors {
            assert!(!format!("{error} {error:?}").contains("secret-part"), "{error}");
        }
        let made = Telegram::webhook(TOKEN, "https://b.example/").build().unwrap();
        let shown = format!("{made:?} {:?} {:?}", polling(), Telegram::webhook(TOKEN, ""));
        assert!(!shown.contains("secret-part"), "{shown}");
    }

    /// I1: whoever wants one more kind of update gets the usual ones too.
    #[test]
    fn one_more_kind_of_update_leaves_the_others() {
        assert!(Telegram::polling(TOKEN).common.updates().is_empty());
        let more = Telegram::polling(TOKEN).also_receive(["message_reaction", "message"]);
        let all = more.common.updates();
        assert_eq!(all.len(), 21);
        assert!(all.iter().any(|kind| kind == "callback_query"));
    }
}
