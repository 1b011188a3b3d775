use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::coordination::{CoordinationError, Coordinator, Ticket};
use crate::id::ChatKey;

/// The place in the queue across replicas that a piece of work was given when it arrived.
pub(super) enum Place {
    Coming(oneshot::Receiver<Result<Ticket, CoordinationError>>),
    There(Box<Result<Ticket, CoordinationError>>),
}

/// Told when a place has been reserved; the next one of the chat waits for it, so that places are
/// reserved in the order in which work arrived.
#[derive(Clone)]
pub(super) struct Reserved(CancellationToken);

impl Place {
    /// Reserves a place behind the one that `behind` tells of, in a task of its own.
    pub(super) fn reserve(
        coordinator: &Arc<dyn Coordinator>,
        chat: &ChatKey,
        behind: Option<Reserved>,
    ) -> (Self, Reserved) {
        let (told, place) = oneshot::channel();
        let (done, reserved) = Reserved::when_dropped();
        let (coordinator, chat) = (Arc::clone(coordinator), chat.clone());
        tokio::spawn(async move {
            let _done = done;
            if let Some(Reserved(behind)) = behind {
                behind.cancelled().await;
            }
            // A ticket that nobody takes any more gives up its place when it is dropped.
            let _ = told.send(coordinator.reserve(&chat).await);
        });
        (Self::Coming(place), reserved)
    }

    pub(super) async fn ticket(self) -> Result<Ticket, CoordinationError> {
        match self {
            Self::Coming(place) => place.await.unwrap_or(Err(CoordinationError::Stopped)),
            Self::There(place) => *place,
        }
    }
}

impl Reserved {
    /// Tells of a place that is reserved when the guard is dropped.
    pub(super) fn when_dropped() -> (DropGuard, Self) {
        let reserved = Self(CancellationToken::new());
        (reserved.0.clone().drop_guard(), reserved)
    }
}
