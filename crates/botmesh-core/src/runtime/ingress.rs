use std::pin::Pin;
use std::sync::{Arc, Weak};

use tokio::task::AbortHandle;

use super::Runtime;
use super::hashed::HashedChat;
use super::lanes::{First, Refusal, Start};
use super::place::{Place, Reserved};
use super::records::LaneMemory;
use crate::id::{ChatKey, ProviderId};
use crate::message::Message;
use crate::provider::{Accepted, DeliverError, Deliveries};

/// Takes the messages of one provider.
pub(super) struct Ingress {
    /// A provider keeps this for as long as it likes, and the runtime keeps the provider.
    pub(super) runtime: Weak<Runtime>,
    pub(super) provider: ProviderId,
}

impl Deliveries for Ingress {
    // Written out, as `async_trait` would, so that the future has the message in its box alone.
    fn deliver<'s, 'f>(&'s self, message: Message) -> Delivery<'f>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.take(Box::new(message)))
    }
}

type Delivery<'f> = Pin<Box<dyn Future<Output = Result<Accepted, DeliverError>> + Send + 'f>>;

impl Ingress {
    async fn take(&self, mut message: Box<Message>) -> Result<Accepted, DeliverError> {
        if message.chat.provider() != self.provider.as_str() {
            return Err(DeliverError::WrongProvider {
                provider: self.provider.clone(),
                found: message.chat.provider().to_owned(),
            });
        }
        let Some(runtime) = self.runtime.upgrade() else { return Err(DeliverError::Stopping) };
        if runtime.durable.is_some() {
            return Box::pin(runtime.deliver_durably(*message)).await;
        }
        loop {
            match runtime.lanes.admit(message, &runtime) {
                Ok(accepted) => return Ok(accepted),
                Err(Refusal::Final(error)) => return Err(error),
                Err(Refusal::NoRoom(refused)) => message = refused,
            }
            runtime.lanes.room().await;
        }
    }
}

impl Start for Arc<Runtime> {
    /// The task ends when the lane is empty.
    fn lane(&self, chat: HashedChat, first: First) -> AbortHandle {
        let runtime = Self::clone(self);
        tokio::spawn(async move {
            let mut memory = LaneMemory::default();
            let mut next = match first {
                First::Queued(queued) => Some(queued),
                First::Arrival(arrival) => Box::pin(runtime.arrive(*arrival)).await,
            };
            loop {
                if let Some(queued) = next {
                    runtime.process(chat.chat(), queued, &mut memory).await;
                }
                next = runtime.lanes.next(&chat);
                if next.is_none() {
                    return;
                }
                // A chat that always has work must not keep others from the processor.
                tokio::task::coop::consume_budget().await;
            }
        })
        .abort_handle()
    }

    fn reserve(&self, chat: &ChatKey, behind: Option<Reserved>) -> Option<(Place, Reserved)> {
        let coordinated = self.coordinated.as_ref()?;
        Some(Place::reserve(&coordinated.coordinator, chat, behind))
    }
}
