//! A provider that is called over HTTP, and a bot that has it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::bot::{Bot, RunningBot};
use botmesh_core::provider::{
    Capabilities, ConnectionState, Inbound, Provider, ProviderError, Receipt, Secret, SendOptions,
    Session, Webhook, WebhookAnswer, WebhookRefusal,
};
use botmesh_core::{ChatKey, Message, MessageId, Outgoing, ProviderId};
use botmesh_webhook::{Limits, LimitsBuilder, Server, ServerHandle, WebhookRouter};
use bytes::Bytes;
use http::Request;
use http::request::Parts;
use tokio::sync::{Notify, watch};

pub(crate) const SECRET: &str = "let-me-in";
/// The longest body that the provider reads.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// Takes lines `id text`, each a message of the chat `1`.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    id: ProviderId,
    secret: Secret,
    inbound: Arc<watch::Sender<Option<Inbound>>>,
}

impl Called {
    pub(crate) fn new() -> Self {
        Self::named("called")
    }

    pub(crate) fn named(id: &str) -> Self {
        let inbound = Arc::new(watch::Sender::new(None));
        Self { id: ProviderId::new(id).unwrap(), secret: Secret::new(SECRET), inbound }
    }
}

#[async_trait]
impl Webhook for Called {
    fn path(&self) -> &str {
        "/called"
    }

    fn max_body(&self) -> usize {
        MAX_BODY
    }

    fn screen(&self, head: &Parts) -> Result<(), WebhookRefusal> {
        let given = head.headers.get("x-secret").map_or(&b""[..], |value| value.as_bytes());
        if self.secret.matches(given) { Ok(()) } else { Err(WebhookRefusal::Unauthorized) }
    }

    async fn receive(&self, request: Request<Bytes>) -> Result<WebhookAnswer, WebhookRefusal> {
        let text = std::str::from_utf8(request.body()).map_err(|_| WebhookRefusal::Malformed)?;
        let (id, text) = text.split_once(' ').ok_or(WebhookRefusal::Malformed)?;
        let inbound = self.inbound.borrow().clone().ok_or(WebhookRefusal::BUSY)?;
        let chat = ChatKey::new(&self.id, "1").unwrap();
        let id = MessageId::new(id).map_err(|_| WebhookRefusal::Malformed)?;
        inbound.deliver(Message::text(chat, text).with_id(id)).await?;
        Ok(WebhookAnswer::Taken)
    }
}

#[async_trait]
impl Provider for Called {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        self.inbound.send_replace(Some(session.inbound().clone()));
        session.set_state(ConnectionState::Open);
        session.cancelled().await;
        self.inbound.send_replace(None);
        Ok(())
    }

    async fn send(
        &self,
        _chat: &ChatKey,
        _message: &Outgoing,
        _options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        Ok(Receipt::default())
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        Some(self)
    }
}

/// A bot behind a server, and what its handlers were given.
pub(crate) struct Stage {
    pub(crate) bot: RunningBot,
    pub(crate) server: ServerHandle,
    pub(crate) handled: watch::Receiver<Vec<String>>,
    /// Lets one handler go on that was told to `wait`.
    pub(crate) gate: Arc<Notify>,
}

pub(crate) async fn stage() -> Stage {
    open(|bot| bot, |limits| limits).await
}

pub(crate) async fn open(
    define: impl FnOnce(Bot) -> Bot,
    limit: impl FnOnce(LimitsBuilder) -> LimitsBuilder,
) -> Stage {
    let (handled, all) = watch::channel(Vec::new());
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let handled = Arc::new(handled);
    let bot = define(Bot::new(Called::new())).fallback(move |ctx| {
        let (handled, gate) = (Arc::clone(&handled), Arc::clone(&held));
        async move {
            if ctx.text() == "wait" {
                gate.notified().await;
            }
            handled.send_modify(|all| all.push(ctx.text().to_owned()));
            Ok(())
        }
    });
    let bot = bot.start().await.unwrap();
    bot.ready().await;
    let limits = limit(Limits::builder()).build().unwrap();
    let router = WebhookRouter::new(bot.webhooks()).limits(limits);
    let server = Server::new(router).unwrap().start("127.0.0.1:0".parse().unwrap()).await.unwrap();
    Stage { bot, server, handled: all, gate }
}

impl Stage {
    /// Waits until this many messages were handled.
    pub(crate) async fn handles(&mut self, count: usize) -> Vec<String> {
        let handled = self.handled.wait_for(|all| all.len() >= count);
        tokio::time::timeout(Duration::from_secs(10), handled).await.unwrap().unwrap().clone()
    }
}
