use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::AbortHandle;

use super::Runtime;
use super::lanes::{Refusal, Work};
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
        let mut message = message;
        loop {
            match self
                .runtime
                .lanes
                .admit(message, |chat, work| self.runtime.spawn_lane(chat, work))
            {
                Ok(accepted) => return Ok(accepted),
                Err(Refusal::Final(error)) => return Err(error),
                Err(Refusal::NoRoom(refused)) => message = refused,
            }
            self.runtime.lanes.room().await;
        }
    }
}

impl Runtime {
    /// Starts the task of a chat's lane; it ends when the lane is empty.
    pub(super) fn spawn_lane(self: &Arc<Self>, chat: ChatKey, first: Work) -> AbortHandle {
        let runtime = Arc::clone(self);
        tokio::spawn(async move {
            let mut work = first;
            loop {
                runtime.process(&chat, work).await;
                match runtime.lanes.next(&chat) {
                    Some(next) => work = next,
                    None => return,
                }
                // A chat that always has work must not keep others from the processor.
                tokio::task::coop::consume_budget().await;
            }
        })
        .abort_handle()
    }
}
