use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::AbortHandle;

use super::Runtime;
use super::hashed::HashedChat;
use super::lanes::{Queued, Refusal, Start};
use super::place::{Place, Reserved};
use super::records::LaneMemory;
use crate::id::{ChatKey, ProviderId};
use crate::message::Message;
use crate::provider::{Accepted, DeliverError, Deliveries};

/// Takes the messages of one provider.
pub(super) struct Ingress {
    pub(super) runtime: Arc<Runtime>,
    pub(super) provider: ProviderId,
}

#[async_trait]
impl Deliveries for Ingress {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        if message.chat.provider() != self.provider.as_str() {
            return Err(DeliverError::WrongProvider {
                provider: self.provider.clone(),
                found: message.chat.provider().to_owned(),
            });
        }
        if self.runtime.durable.is_some() {
            return self.runtime.deliver_durably(message).await;
        }
        let mut message = Box::new(message);
        loop {
            match self.runtime.lanes.admit(message, &self.runtime) {
                Ok(accepted) => return Ok(accepted),
                Err(Refusal::Final(error)) => return Err(error),
                Err(Refusal::NoRoom(refused)) => message = refused,
            }
            self.runtime.lanes.room().await;
        }
    }
}

impl Start for Arc<Runtime> {
    /// The task ends when the lane is empty.
    fn lane(&self, chat: HashedChat, first: Queued) -> AbortHandle {
        let runtime = Self::clone(self);
        tokio::spawn(async move {
            let (mut queued, mut memory) = (first, LaneMemory::default());
            loop {
                runtime.process(chat.chat(), queued, &mut memory).await;
                match runtime.lanes.next(&chat) {
                    Some(next) => queued = next,
                    None => return,
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
