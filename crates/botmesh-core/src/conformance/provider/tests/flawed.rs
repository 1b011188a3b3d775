use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::{Content, Media, Message, Outgoing};
use crate::provider::{
    Accepted, Capabilities, Capability, ConnectionState, DeliverError, Deliveries, Inbound,
    MediaStream, Provider, ProviderError, Receipt, SendOptions, Session,
};
use crate::testing::TestProvider;

macro_rules! flaws {
    ($($flaw:ident),* $(,)?) => {
        /// What a provider does wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Flaw { None, $($flaw),* }

        impl Flaw {
            pub(super) const ALL: &[Self] = &[$(Self::$flaw),*];
        }
    };
}

flaws! {
    SwapsMessages, MixesChats, HasNoIds, NumbersAnew, ChangesInbound, CutsInbound, DropsCaptions,
    AcknowledgesEarly, SwallowsRefusals, DropsOlder, BelievesClocks, GivesUpEarly,
    SwapsSends, ChangesOutbound, CutsOutbound, SendsEmpty, RepeatsReceipts, LosesPayloads,
    DropsAttachments, DropsFormatting, CutsMenus, PretendsActions, SilentlyLacks, ForgetsKeys, HasOneError,
    SendsAnywhere, IgnoresCancellation, WaitsForTheBot, RunsOnce, EndsAtGarbage, StaysAway,
    ShowsSecrets,
}

impl Flaw {
    /// Whether it shows only on a platform that can do nothing.
    pub(super) fn needs_bare(self) -> bool {
        self == Self::SilentlyLacks
    }
}

/// A provider that does one thing wrong.
pub(super) struct Flawed {
    inner: TestProvider,
    flaw: Flaw,
    held: Mutex<Option<(ChatKey, Outgoing)>>,
    runs: AtomicUsize,
}

impl Flawed {
    pub(super) fn new(inner: TestProvider, flaw: Flaw) -> Self {
        Self { inner, flaw, held: Mutex::default(), runs: AtomicUsize::new(0) }
    }
}

impl fmt::Debug for Flawed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = if self.flaw == Flaw::ShowsSecrets { "token-of-the-test" } else { ".." };
        f.debug_struct("Flawed").field("token", &token).finish()
    }
}

/// Stands between the platform and the bot.
struct Meddler {
    inbound: Inbound,
    flaw: Flaw,
    count: AtomicUsize,
    swapped: Mutex<Option<Message>>,
    finished: AtomicUsize,
    /// The highest number, or the latest moment, that there was.
    newest: AtomicUsize,
}

impl Meddler {
    /// Whether the bot has a message that it has not decided about.
    fn is_waiting(&self) -> bool {
        self.count.load(Ordering::Relaxed) > self.finished.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Deliveries for Meddler {
    async fn deliver(&self, mut message: Message) -> Result<Accepted, DeliverError> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        match self.flaw {
            Flaw::SwapsMessages => {
                let before = self.swapped.lock().replace(message);
                let Some(before) = before else { return Ok(Accepted::New) };
                let now = self.swapped.lock().take();
                self.inbound.deliver(now.unwrap()).await?;
                return self.inbound.deliver(before).await;
            }
            Flaw::MixesChats => {
                let provider = ProviderId::new("test").unwrap();
                message.chat = ChatKey::new(&provider, "ana").unwrap();
            }
            Flaw::DropsOlder => {
                let number = message.id.as_ref().and_then(|id| id.as_str()[1..].parse().ok());
                let newest = self.newest.fetch_max(number.unwrap_or(0), Ordering::Relaxed);
                if number.is_some_and(|number: usize| number < newest) {
                    return Ok(Accepted::Duplicate);
                }
            }
            Flaw::BelievesClocks => {
                let moment = usize::try_from(message.sent_at.as_millis()).unwrap();
                if moment < self.newest.fetch_max(moment, Ordering::Relaxed) {
                    return Ok(Accepted::Duplicate);
                }
            }
            Flaw::HasNoIds => message.id = None,
            Flaw::NumbersAnew => message.id = Some(MessageId::new(format!("n{count}")).unwrap()),
            Flaw::ChangesInbound => {
                if let Content::Text(text) = &mut message.content {
                    *text = text.to_lowercase();
                }
            }
            Flaw::CutsInbound => {
                if let Content::Text(text) = &mut message.content {
                    text.truncate(4096);
                }
            }
            Flaw::DropsCaptions => match &mut message.content {
                Content::Media(media) => media.caption = None,
                Content::Location(place) => place.latitude = 0.0,
                _ => {}
            },
            Flaw::LosesPayloads => {
                if let Content::Button(press) = &mut message.content {
                    press.payload = press.label.clone().unwrap_or_default();
                }
            }
            Flaw::AcknowledgesEarly => {
                let inbound = self.inbound.clone();
                tokio::spawn(async move { inbound.deliver(message).await });
                return Ok(Accepted::New);
            }
            Flaw::SwallowsRefusals if count == 0 => {
                return Ok(self.inbound.deliver(message).await.unwrap_or(Accepted::New));
            }
            // Not taken a second time, as by a provider that thinks it is done with it.
            Flaw::SwallowsRefusals => return Ok(Accepted::Duplicate),
            _ => {}
        }
        let decided = self.inbound.deliver(message).await;
        self.finished.fetch_add(1, Ordering::Relaxed);
        decided
    }
}

impl Flawed {
    /// Whether an action is claimed and not done.
    fn pretends(&self) -> bool {
        matches!(self.flaw, Flaw::PretendsActions | Flaw::SilentlyLacks)
    }

    async fn send_wrongly(
        &self,
        chat: &ChatKey,
        mut message: Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let mut options = options.clone();
        match self.flaw {
            Flaw::SwapsSends => {
                let before = self.held.lock().take();
                let Some((_, before)) = before else {
                    *self.held.lock() = Some((chat.clone(), message));
                    return Ok(Receipt::default());
                };
                self.inner.send(chat, &message, &options).await?;
                return self.inner.send(chat, &before, &options).await;
            }
            Flaw::ChangesOutbound => message.text = message.text.to_lowercase().into(),
            Flaw::CutsOutbound => message.text.to_mut().truncate(4096),
            Flaw::SendsEmpty if message == Outgoing::default() => return Ok(Receipt::default()),
            Flaw::DropsAttachments => {
                message.attachments.clear();
                message.location = None;
                if message.text.is_empty() {
                    return Ok(Receipt::default());
                }
            }
            Flaw::DropsFormatting => message.spans.clear(),
            Flaw::CutsMenus => message.buttons.truncate(2),
            Flaw::SilentlyLacks => message.attachments.clear(),
            Flaw::ForgetsKeys => options.idempotency_key = None,
            _ => {}
        }
        let receipt = self.inner.send(chat, &message, &options).await?;
        if self.flaw == Flaw::RepeatsReceipts {
            return Ok(Receipt::of(MessageId::new("1").unwrap()));
        }
        Ok(receipt)
    }
}

#[async_trait]
impl Provider for Flawed {
    fn id(&self) -> &ProviderId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        if self.runs.fetch_add(1, Ordering::Relaxed) > 0 && self.flaw == Flaw::RunsOnce {
            let reason = "it ran before".to_owned();
            return Err(ProviderError::Closed { provider: self.id().clone(), reason });
        }
        let meddler = Arc::new(Meddler {
            inbound: session.inbound().clone(),
            flaw: self.flaw,
            count: AtomicUsize::new(0),
            swapped: Mutex::default(),
            finished: AtomicUsize::new(0),
            newest: AtomicUsize::new(0),
        });
        let cancel = CancellationToken::new();
        let (state, mut states) = watch::channel(ConnectionState::Connecting);
        let inbound = Inbound::new(Arc::clone(&meddler) as Arc<dyn Deliveries>);
        let inner = self.inner.run(Session::new(inbound, cancel.clone(), Arc::new(state)));
        let report = async {
            while states.changed().await.is_ok() {
                session.set_state(*states.borrow_and_update());
            }
            std::future::pending::<()>().await;
        };
        let stop = async {
            session.cancelled().await;
            let waits = self.flaw == Flaw::WaitsForTheBot && meddler.is_waiting();
            if self.flaw == Flaw::IgnoresCancellation || waits {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            ended = inner => ended,
            () = report => Ok(()),
            () = stop => Ok(()),
        }
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let own = ChatKey::new(self.id(), &chat.chat()).unwrap();
        let chat = if self.flaw == Flaw::SendsAnywhere { &own } else { chat };
        let sending = self.send_wrongly(chat, message.clone(), options);
        let patience = if self.flaw == Flaw::GivesUpEarly { 1 } else { 3600 };
        let sent = match tokio::time::timeout(Duration::from_secs(patience), sending).await {
            Ok(sent) => sent,
            Err(late) => {
                Err(ProviderError::Unreachable { provider: self.id().clone(), source: late.into() })
            }
        };
        sent.map_err(|error| match self.flaw {
            Flaw::HasOneError => {
                ProviderError::Rejected { provider: self.id().clone(), reason: error.to_string() }
            }
            _ => error,
        })
    }

    async fn edit(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        new: &Outgoing,
    ) -> Result<(), ProviderError> {
        if self.pretends() { Ok(()) } else { self.inner.edit(chat, message, new).await }
    }

    async fn delete(&self, chat: &ChatKey, message: &MessageId) -> Result<(), ProviderError> {
        if self.pretends() { Ok(()) } else { self.inner.delete(chat, message).await }
    }

    async fn react(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), ProviderError> {
        if self.pretends() { Ok(()) } else { self.inner.react(chat, message, emoji).await }
    }

    async fn download(&self, media: &Media) -> Result<MediaStream, ProviderError> {
        if self.pretends() {
            return Ok(MediaStream::new(futures_util::stream::empty()));
        }
        self.inner.download(media).await
    }

    async fn typing(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        if self.pretends() { Ok(()) } else { self.inner.typing(chat).await }
    }

    fn unsupported(&self, capability: Capability) -> ProviderError {
        self.inner.unsupported(capability)
    }
}
