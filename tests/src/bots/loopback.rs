//! The provider of a replica that speaks the protocol of the platform.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::message::Outgoing;
use botmesh_core::provider::{
    Capabilities, ConnectionState, Inbound, Provider, ProviderError, Receipt, SendOptions, Session,
};
use botmesh_core::{ChatKey, Message, MessageId, ProviderId};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::notes::{Life, Notebook};
use super::watched::Turns;
use super::wire::{FromBot, Reader, ToBot, write};

/// How long a connection that is to end may take to say what was said.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to the platform.
#[derive(Debug)]
pub struct Loopback {
    id: ProviderId,
    exclusive: bool,
    recognises: bool,
    port: u16,
    life: Life,
    turns: Arc<Turns>,
    lines: Mutex<Option<mpsc::UnboundedSender<FromBot>>>,
    receipts: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    sends: AtomicU64,
}

/// Takes the way to the platform away when the connection ends, however it does.
struct Connected<'a>(&'a Loopback);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        *self.0.lines.lock() = None;
        self.0.receipts.lock().clear();
    }
}

impl Loopback {
    /// The provider `id` of the replica `life`, of a platform on this port.
    #[must_use]
    pub fn new(id: ProviderId, port: u16, life: Life, turns: Arc<Turns>) -> Self {
        let (lines, receipts) = (Mutex::new(None), Mutex::default());
        let sends = AtomicU64::new(0);
        let (exclusive, recognises) = (false, false);
        Self { id, exclusive, recognises, port, life, turns, lines, receipts, sends }
    }

    /// With a session that only one replica may have.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// To a platform that recognises a send that comes again.
    #[must_use]
    pub fn recognising(mut self) -> Self {
        self.recognises = true;
        self
    }

    fn unreachable(&self, why: &str) -> ProviderError {
        ProviderError::Unreachable { provider: self.id.clone(), source: why.into() }
    }

    async fn take(&self, line: ToBot, inbound: &Inbound) -> Option<FromBot> {
        let (message, chat, text) = match line {
            ToBot::Message { message, chat, text } => (message, chat, text),
            ToBot::Sent { number } => {
                if let Some(receipt) = self.receipts.lock().remove(&number) {
                    let _ = receipt.send(());
                }
                return None;
            }
        };
        let (chat, id) = (ChatKey::decode(&chat).ok()?, MessageId::new(message.to_string()).ok()?);
        let delivered = inbound.deliver(Message::text(chat, text).with_id(id)).await;
        Some(match delivered {
            Ok(_) => FromBot::Taken { message },
            Err(_) => FromBot::Refused { message },
        })
    }
}

#[async_trait]
impl Provider for Loopback {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.exclusive_session = self.exclusive;
        capabilities.idempotent_send = self.recognises;
        capabilities
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await;
        let stream = stream.map_err(|error| self.unreachable(&error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let (read, written) = stream.into_split();
        let (lines, queued) = mpsc::unbounded_channel();
        let hello = FromBot::Hello { life: self.life, provider: self.id.as_str().to_owned() };
        let _ = lines.send(hello);
        *self.lines.lock() = Some(lines.clone());
        let _connected = Connected(self);
        session.set_state(ConnectionState::Open);
        let mut reader = Reader::new(read);
        let received = async {
            while let Some(line) = reader.next().await {
                if let Some(answer) = self.take(line, session.inbound()).await {
                    let _ = lines.send(answer);
                }
            }
        };
        let written = write(written, queued);
        tokio::pin!(written);
        tokio::select! {
            () = received => return Err(self.unreachable("the platform hung up")),
            () = &mut written => return Err(self.unreachable("the platform hung up")),
            () = session.cancelled() => {}
        }
        // What was accepted is still told so.
        *self.lines.lock() = None;
        drop(lines);
        let _ = tokio::time::timeout(LAST_WORDS, written).await;
        Ok(())
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let checked = Notebook::now();
        let turn = self.turns.of(chat.as_str());
        let allowed = turn.as_ref().is_some_and(|turn| turn.check().is_ok());
        let number = self.sends.fetch_add(1, Ordering::Relaxed);
        let (receipt, received) = oneshot::channel();
        let line = FromBot::Send {
            number,
            chat: chat.as_str().to_owned(),
            text: message.text.to_string(),
            key: options.idempotency_key.clone().filter(|_| self.recognises),
            fence: turn.map(|turn| turn.fence().get()),
            checked,
            allowed,
        };
        self.receipts.lock().insert(number, receipt);
        let sent = self.lines.lock().as_ref().is_some_and(|lines| lines.send(line).is_ok());
        if !sent {
            self.receipts.lock().remove(&number);
            return Err(self.unreachable("it is not connected"));
        }
        received.await.map_err(|_| self.unreachable("the connection ended"))?;
        Ok(Receipt::default())
    }
}
