//! Being called with updates: <https://core.telegram.org/bots/api#setwebhook>.

mod gathering;

use std::fmt;

use async_trait::async_trait;
use botmesh_core::provider::{
    ConnectionState, ProviderError, Secret, Session, Webhook, WebhookAnswer, WebhookRefusal,
};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request};
use reqwest::Url;
use serde_json::Value;

use crate::api;
use crate::slot::{Entrance, Slot};
use crate::telegram::{Inner, Mode, Telegram};
use crate::trouble::Trouble;
use crate::update::Update;
use gathering::Gathering;

const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// The longest update that is read. Telegram's are a few kilobytes, and an album of quoted texts a
/// few dozen.
const MAX_UPDATE: usize = 4 << 20;

/// Where Telegram calls.
pub(crate) struct Registration {
    address: Url,
    path: String,
    secret: Secret,
    connections: u8,
    updates: Vec<String>,
    register: bool,
    gathering: Gathering,
}

impl Registration {
    pub(crate) fn new(
        address: Url,
        path: String,
        secret: Secret,
        connections: u8,
        updates: Vec<String>,
        register: bool,
    ) -> Self {
        let gathering = Gathering::default();
        Self { address, path, secret, connections, updates, register, gathering }
    }

    fn request(&self) -> api::Request<'_> {
        let mut request = api::Request::new("setWebhook");
        request.set("url", self.address.as_str());
        request.set("secret_token", self.secret.reveal());
        request.set("max_connections", i64::from(self.connections));
        request.set("allowed_updates", Value::from(self.updates.clone()));
        request
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a path that its owner keeps to himself.
        f.debug_struct("Registration")
            .field("host", &self.address.host_str().unwrap_or_default())
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// Takes calls until the session ends.
pub(crate) async fn run(
    inner: &Inner,
    registration: &Registration,
    slot: &Slot,
    session: &Session,
) -> Result<(), ProviderError> {
    let serving = async {
        let recipient = inner.introduce(session).await?;
        let (entrance, pressed) = Entrance::new(session.inbound().clone(), recipient);
        // Telegram may know the address since the last time, and call at once.
        let _occupied = slot.fill(entrance);
        let mut trouble = Trouble::default();
        while registration.register
            && let Err(failure) = inner.api.send(&registration.request()).await
        {
            inner.sit_out(session, failure, &mut trouble).await?;
        }
        session.set_state(ConnectionState::Open);
        inner.answer_presses(pressed).await;
        Ok(())
    };
    tokio::select! {
        biased;
        () = session.cancelled() => Ok(()),
        ended = serving => ended,
    }
}

#[async_trait]
impl Webhook for Telegram {
    fn path(&self) -> &str {
        match &self.inner.mode {
            Mode::Webhook(registration, _) => &registration.path,
            Mode::Polling(_) => "/",
        }
    }

    fn max_body(&self) -> usize {
        MAX_UPDATE
    }

    fn screen(&self, head: &Parts) -> Result<(), WebhookRefusal> {
        let Mode::Webhook(registration, _) = &self.inner.mode else {
            return Err(WebhookRefusal::Broken);
        };
        let given = head.headers.get(SECRET_HEADER).map_or(&b""[..], |value| value.as_bytes());
        if !registration.secret.matches(given) {
            return Err(WebhookRefusal::Unauthorized);
        }
        if head.method == Method::POST { Ok(()) } else { Err(WebhookRefusal::Malformed) }
    }

    async fn receive(&self, request: Request<Bytes>) -> Result<WebhookAnswer, WebhookRefusal> {
        let Mode::Webhook(registration, slot) = &self.inner.mode else {
            return Err(WebhookRefusal::Broken);
        };
        let entrance = slot.present().ok_or(WebhookRefusal::BUSY)?;
        let update = Update::from_json(request.body()).map_err(|error| {
            tracing::warn!(provider = %self.inner.id, %error, "an update cannot be read");
            WebhookRefusal::Malformed
        })?;
        let message = update.to_message(&entrance.recipient);
        match update.album() {
            Some((chat, album)) => {
                registration.gathering.add(chat, album, message, &entrance.inbound).await?;
            }
            None => {
                entrance.inbound.deliver(message).await?;
            }
        }
        if let Some(callback) = update.callback() {
            entrance.answer(callback);
        }
        Ok(WebhookAnswer::Taken)
    }
}
