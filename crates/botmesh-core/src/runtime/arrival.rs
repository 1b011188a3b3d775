//! The way in where turns and inbox are one backend: a message whose chat has nothing to do here is
//! admitted, gets its turn and is begun by one request.

use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio_util::sync::DropGuard;

use super::Runtime;
use super::journal::Admitted;
use super::lanes::Queued;
use super::place::{Place, Reserved};
use super::turn::Turn;
use crate::coordination::{CoordinationError, IngestError, Ingested, JournaledTurns, Ticket};
use crate::error::BotError;
use crate::message::Message;
use crate::provider::{Accepted, DeliverError};
use crate::store::{Commit, Committed};

/// A message that begins the lane of its chat, in which it is admitted.
pub(crate) struct Arrival {
    pub(super) message: Message,
    /// Keeps later messages of the chat behind it.
    gate: OwnedMutexGuard<()>,
    /// Keeps later places of the chat behind its own.
    reserving: DropGuard,
    reserved: Reserved,
    told: oneshot::Sender<Told>,
}

type Told = Result<Accepted, DeliverError>;

impl Arrival {
    /// A message, and what is told when it was admitted or not.
    pub(super) fn new(
        message: Message,
        gate: OwnedMutexGuard<()>,
    ) -> (Self, oneshot::Receiver<Told>) {
        let (told, hears) = oneshot::channel();
        let (reserving, reserved) = Reserved::when_dropped();
        (Self { message, gate, reserving, reserved, told }, hears)
    }

    /// Tells when its place is reserved.
    pub(super) fn reserved(&self) -> Reserved {
        self.reserved.clone()
    }

    /// The chat has other work already.
    pub(super) fn take_back(self) -> (Message, OwnedMutexGuard<()>) {
        (self.message, self.gate)
    }
}

impl Runtime {
    /// The turns that take the steps of the bot's inbox along, where both are one backend.
    pub(super) fn journaled(&self) -> Option<&dyn JournaledTurns> {
        if !self.journals() {
            return None;
        }
        let (_, inbox) = self.durable()?;
        let realm = inbox.realm()?;
        let journaled = self.coordinated.as_ref()?.coordinator.journaled();
        journaled.filter(|journaled| journaled.is_in(realm))
    }

    /// Admits a message in the lane that it has begun; the work that it makes, if it makes any.
    pub(super) async fn arrive(self: &Arc<Self>, arrival: Arrival) -> Option<Queued> {
        let Arrival { message, gate, reserving, reserved: _, told } = arrival;
        let chat = message.chat.clone();
        let taken = self.take_in(message).await;
        drop(gate);
        self.leave_gate(&chat);
        let (accepted, work, place) = match taken {
            Ok((Admitted { accepted, work }, place)) => (Ok(accepted), work, place),
            Err(error) => (Err(error), None, None),
        };
        // Whoever delivered it may have gone.
        let _ = told.send(accepted);
        let work = work?;
        let place = match (place, &self.coordinated) {
            (Some(place), _) => place,
            (None, Some(coordinated)) => coordinated.coordinator.reserve(&chat).await,
            (None, None) => Err(CoordinationError::Stopped),
        };
        drop(reserving);
        Some(Queued { work, place: Some(Place::There(Box::new(place))) })
    }

    async fn take_in(
        &self,
        message: Message,
    ) -> Result<(Admitted, Option<Result<Ticket, CoordinationError>>), DeliverError> {
        let Some(journaled) = self.journaled() else { return Err(DeliverError::Stopping) };
        let body = self.body(&message)?;
        let ingested = journaled.ingest(self.new_record(&message, body.as_deref())).await;
        let may_be_known = match ingested {
            Ok(Ingested { admission, place, begins }) => {
                return Ok((self.admitted(admission, message, begins)?, place));
            }
            Err(IngestError::Unknown(error)) => {
                tracing::debug!(%error, "whether a message was admitted is not known");
                true
            }
            Err(error) => {
                tracing::debug!(%error, "a message is admitted by itself");
                false
            }
        };
        Ok((self.admit(message, may_be_known).await?, None))
    }

    /// Ends a record together with its turn, where that is one step; none where it is not. While
    /// it is under way nothing has an effect under the turn.
    pub(super) async fn commit_with_turn(
        &self,
        turn: &Turn,
        commit: Commit<'_>,
    ) -> Option<Result<Committed, BotError>> {
        let journaled = self.journaled()?;
        turn.close();
        let committed = journaled.commit(turn, commit).await;
        if !matches!(committed, Ok(Committed::Applied(_))) {
            turn.reopen();
        }
        Some(committed.map_err(BotError::from))
    }
}
