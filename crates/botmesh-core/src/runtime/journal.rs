use std::sync::Arc;
use std::task::Poll;

use super::Runtime;
use super::arrival::Arrival;
use super::lanes::{Entrance, Refusal, Work};
use super::recorded::Recorded;
use super::records::Own;
use crate::coordination::Begins;
use crate::id::ChatKey;
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

/// What came of a message, and the work that it makes.
pub(super) struct Admitted {
    pub(super) accepted: Accepted,
    pub(super) work: Option<Work>,
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
        let (message, passed) = match passed {
            Poll::Ready(gate) if self.journaled().is_some() => {
                let (arrival, told) = Arrival::new(message, gate);
                match self.lanes.open(Box::new(arrival), self) {
                    Ok(()) => {
                        room.keep();
                        return told.await.unwrap_or(Err(DeliverError::Stopping));
                    }
                    Err(arrival) => {
                        let (message, gate) = arrival.take_back();
                        (message, Poll::Ready(gate))
                    }
                }
            }
            passed => (message, passed),
        };
        let runtime = Arc::clone(self);
        let admitted = tokio::spawn(async move {
            let gate = match passed {
                Poll::Ready(gate) => gate,
                Poll::Pending => passing.await,
            };
            let chat = message.chat.clone();
            let admitted =
                runtime.admit(message, false).await.map(|Admitted { accepted, work }| {
                    if let Some(work) = work {
                        room.keep();
                        runtime.lanes.push(&chat, work, &runtime);
                    }
                    accepted
                });
            drop(gate);
            runtime.leave_gate(&chat);
            admitted
        });
        // It ends early only with the process's runtime.
        admitted.await.unwrap_or(Err(DeliverError::Stopping))
    }

    /// Admits a message; `may_be_known` tells that an attempt whose outcome is not known came
    /// before.
    pub(super) async fn admit(
        &self,
        message: Message,
        may_be_known: bool,
    ) -> Result<Admitted, DeliverError> {
        let Some((_, inbox)) = self.durable() else { return Err(DeliverError::Stopping) };
        let body = self.body(&message)?;
        let admission = inbox.admit(self.new_record(&message, body.as_deref())).await;
        let admission = admission.map_err(|error: StoreError| DeliverError::Store(error.into()))?;
        match admission {
            // Perhaps by that attempt: then somebody has to look after it.
            Admission::Known if may_be_known => {
                self.lanes.remember(&message.chat, message.id.as_ref());
                Ok(Admitted { accepted: Accepted::New, work: Some(Work::Record(None)) })
            }
            admission => self.admitted(admission, message, Begins::Later),
        }
    }

    /// What follows from the answer of the inbox.
    pub(super) fn admitted(
        &self,
        admission: Admission,
        message: Message,
        begins: Begins,
    ) -> Result<Admitted, DeliverError> {
        // A claim that is given up later must not be known then.
        if self.journals() && !matches!(admission, Admission::Full { .. }) {
            self.lanes.remember(&message.chat, message.id.as_ref());
        }
        match admission {
            Admission::New { position, is_behind } => {
                let recorded = Recorded::Message(Box::new(message));
                let own = Own { position, recorded, is_behind, begins };
                let work = Some(Work::Record(Some(Box::new(own))));
                Ok(Admitted { accepted: Accepted::New, work })
            }
            Admission::Known => Ok(Admitted { accepted: Accepted::Duplicate, work: None }),
            Admission::Full { waiting } => Err(DeliverError::ChatFull { waiting }),
        }
    }

    /// What the inbox keeps of a message; none when it keeps no more than its id.
    pub(super) fn body(&self, message: &Message) -> Result<Option<String>, DeliverError> {
        let body = self.journals().then(|| serde_json::to_string(message)).transpose();
        body.map_err(|error| DeliverError::Store(error.into()))
    }

    pub(super) fn new_record<'a>(
        &self,
        message: &'a Message,
        body: Option<&'a str>,
    ) -> NewRecord<'a> {
        let durable = self.durable.as_ref();
        NewRecord {
            chat: &message.chat,
            message: message.id.as_ref(),
            body,
            lease: durable.map(|durable| durable.lease).unwrap_or_default(),
            most: durable.map_or(usize::MAX, |durable| durable.settings.max_pending_per_chat),
        }
    }

    /// Forgets the gate of a chat if nobody stands before it.
    pub(super) fn leave_gate(&self, chat: &ChatKey) {
        if let Some(durable) = &self.durable {
            durable.gates.leave(chat);
        }
    }
}
