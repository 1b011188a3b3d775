//! What a coordinator says to the backend when it stops.

use futures_util::future::join_all;

use super::backend::{Backend, BackendError};
use super::shared::{Live, Shared, unavailable};
use crate::coordination::transition::Operation;
use crate::coordination::{CoordinationError, CoordinatorEvent, LossReason};

/// Releases everything at the backend: first those who wait, then those who hold, then the
/// session.
pub(super) async fn say_goodbye<B: Backend>(
    shared: &Shared<B>,
    live: &Live,
) -> Result<(), CoordinationError> {
    let incarnation = live.lease.incarnation();
    let open = shared.tickets.open_of(incarnation);
    for key in shared.tickets.lose_all(incarnation, LossReason::Stopped) {
        if let Some(name) = key.leader() {
            shared.emit(CoordinatorEvent::Follower { name, reason: LossReason::Stopped });
        }
    }
    let (held, waiting): (Vec<_>, Vec<_>) = open.into_iter().partition(|open| open.held);
    for tickets in [waiting, held] {
        let releases = tickets.into_iter().map(|open| {
            let ticket = live.ticket(open.sequence);
            let release = Operation::Release { key: open.key, ticket };
            async move { shared.send(&release).await }
        });
        join_all(releases).await;
    }
    let stop = Operation::Stop { incarnation: incarnation.clone() };
    match shared.send(&stop).await {
        Ok(_) => Ok(()),
        Err(BackendError::Unfit(reason)) => Err(CoordinationError::Unfit { reason }),
        Err(BackendError::Refused(source) | BackendError::Unknown(source)) => {
            Err(unavailable("stop", source))
        }
    }
}
