use std::sync::Arc;

use super::Runtime;
use super::lanes::{Entrance, Refusal, Work};
use super::records::Own;
use crate::message::Message;
use crate::provider::{Accepted, DeliverError};
use crate::store::{Admission, NewRecord, StoreError};

/// Room in the bot for one message, which is given back unless the message is put to work.
struct Room(Option<Arc<Runtime>>);

impl Room {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Some(runtime) = &self.0 {
            runtime.lanes.give_room();
        }
    }
}

impl Runtime {
    /// Accepts a message once the inbox has it. Messages of a chat are admitted in the order in
    /// which they are given; a call that is cancelled goes on, for what was admitted must be
    /// processed.
    pub(super) async fn deliver_durably(
        self: &Arc<Self>,
        message: Message,
    ) -> Result<Accepted, DeliverError> {
        let room = loop {
            match self.lanes.enter(&message.chat, message.id.as_ref()) {
                Ok(Entrance::Known) => return Ok(Accepted::Duplicate),
                Ok(Entrance::Open) => break Room(Some(Arc::clone(self))),
                Err(Refusal::Final(error)) => return Err(error),
                Err(Refusal::NoRoom(())) => self.lanes.room().await,
            }
        };
        let Some((durable, _)) = self.durable() else { return Err(DeliverError::Stopping) };
        let gate = durable.gates.gate(&message.chat);
        let mut passing = Box::pin(gate.lock_owned());
        // Takes the place in the order of the chat, before anything else can come in between.
        let passed = futures_util::poll!(&mut passing);
        let runtime = Arc::clone(self);
        let admitted = tokio::spawn(async move {
            let gate = match passed {
                std::task::Poll::Ready(gate) => gate,
                std::task::Poll::Pending => passing.await,
            };
            let chat = message.chat.clone();
            let admitted = runtime.admit(room, message).await;
            drop(gate);
            if let Some((durable, _)) = runtime.durable() {
                durable.gates.leave(&chat);
            }
            admitted
        });
        // It ends early only with the process's runtime.
        admitted.await.unwrap_or(Err(DeliverError::Stopping))
    }

    async fn admit(
        self: &Arc<Self>,
        room: Room,
        message: Message,
    ) -> Result<Accepted, DeliverError> {
        let Some((durable, inbox)) = self.durable() else { return Err(DeliverError::Stopping) };
        let unwritable = |error: serde_json::Error| DeliverError::Store(error.into());
        let journals = self.journals();
        let body = journals.then(|| serde_json::to_string(&message)).transpose();
        let body = body.map_err(unwritable)?;
        let record = NewRecord {
            chat: &message.chat,
            message: message.id.as_ref(),
            body: body.as_deref(),
            lease: durable.lease,
            most: durable.settings.max_pending_per_chat,
        };
        let unstored = |error: StoreError| DeliverError::Store(error.into());
        match inbox.admit(record).await.map_err(unstored)? {
            Admission::New { position, is_behind } => {
                room.keep();
                // A claim that is given up later must not be known then.
                if journals {
                    self.lanes.remember(&message.chat, message.id.as_ref());
                }
                let chat = message.chat.clone();
                let own = Own { position, message: Box::new(message), is_behind };
                let work = Work::Record(Some(Box::new(own)));
                self.lanes.push(&chat, work, self);
                Ok(Accepted::New)
            }
            Admission::Known => {
                if journals {
                    self.lanes.remember(&message.chat, message.id.as_ref());
                }
                Ok(Accepted::Duplicate)
            }
            Admission::Full { waiting } => Err(DeliverError::ChatFull { waiting }),
        }
    }
}
