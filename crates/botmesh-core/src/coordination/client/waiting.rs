//! Waits for the grant of a ticket: by wake-up, by polling when none comes.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::Instant;

use super::backend::{Backend, BackendError};
use super::shared::{Backoff, SECOND, Shared};
use super::tickets::Settled;
use crate::coordination::transition::{Operation, Reply, TicketId};
use crate::coordination::{CoordinationError, CoordinationKey, Grant, LossReason, SessionLease};

/// The longest time between two polls while pushes can arrive and not very many tickets wait. They
/// only repair a push that was lost.
const SAFETY_POLL: Duration = Duration::from_secs(2);
/// All tickets of a replica together poll so often at most while pushes can arrive: each two
/// hundredth of a second.
const BETWEEN_POLLS: Duration = Duration::from_millis(5);
/// The shortest time between two polls while no push can arrive.
const LEAST_POLL: Duration = Duration::from_millis(5);

impl<B: Backend> Shared<B> {
    /// Waits until `sequence` holds `key`.
    pub(super) async fn wait(
        &self,
        session: &SessionLease,
        key: &CoordinationKey,
        sequence: u64,
        wait: Option<Duration>,
    ) -> Result<Grant, CoordinationError> {
        // A free key is granted with the answer to the reservation.
        match self.tickets.settled(sequence) {
            Some(settled) => self.settle(session, key, settled),
            // The state of waiting is large, and most tickets have no use for it.
            None => Box::pin(self.wait_long(session, key, sequence, wait)).await,
        }
    }

    async fn wait_long(
        &self,
        session: &SessionLease,
        key: &CoordinationKey,
        sequence: u64,
        wait: Option<Duration>,
    ) -> Result<Grant, CoordinationError> {
        let settled = poll_fn(|context| self.tickets.poll_settled(sequence, context));
        let settled = async {
            tokio::select! {
                biased;
                settled = settled => settled,
                reason = session.ended() => Settled::Lost(reason),
                never = self.poll(session, key, sequence) => never,
            }
        };
        let settled = match wait {
            None => settled.await,
            Some(wait) => match tokio::time::timeout(wait, settled).await {
                Ok(settled) => settled,
                Err(_) => {
                    return Err(CoordinationError::TimedOut { key: key.clone(), waited: wait });
                }
            },
        };
        self.settle(session, key, settled)
    }

    fn settle(
        &self,
        session: &SessionLease,
        key: &CoordinationKey,
        settled: Settled,
    ) -> Result<Grant, CoordinationError> {
        match (settled, session.loss()) {
            (Settled::Granted(grant), None) => Ok(grant),
            // A grant that comes after the deadline is worth nothing: others may take the key.
            (Settled::Lost(LossReason::Stopped), _) | (_, Some(LossReason::Stopped)) => {
                Err(CoordinationError::Stopped)
            }
            // Whoever lets a lease expire is presumed dead, and the ticket is or will be skipped.
            (Settled::Lost(_) | Settled::Granted(_), _) => {
                let reason = LossReason::Superseded;
                Err(CoordinationError::LeaseLost { key: key.clone(), reason })
            }
        }
    }

    /// Polls while the ticket waits. A poll also takes the key from a dead holder, for whoever is
    /// next.
    async fn poll(&self, session: &SessionLease, key: &CoordinationKey, sequence: u64) -> Settled {
        let mut path = self.path.watch();
        let ticket = TicketId { incarnation: session.incarnation().clone(), sequence };
        let operation = Operation::Poll { key: key.clone(), ticket: ticket.clone() };
        let backoff = || Backoff::new(LEAST_POLL, self.settings.max_poll());
        let mut connected = path.get().connected;
        let mut pauses = backoff();
        let mut remaining = self.tickets.remaining(sequence);
        let begun = Instant::now();
        loop {
            let first = self.tickets.is_first(sequence);
            let pause = match connected {
                true => self.safety_pause(begun.elapsed()),
                false => pauses.step(),
            };
            let due = Instant::now() + pause.min(remaining + jitter(sequence));
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(due) => {
                    // Those behind are granted after the first, and need not ask so long.
                    if connected && !first {
                        remaining = SECOND;
                        continue;
                    }
                }
                () = path.changed() => {
                    connected = path.get().connected;
                    pauses = backoff();
                }
            }
            match self.send(&operation).await {
                Ok(Reply::Granted(grant)) => {
                    self.tickets.grant(&ticket, grant);
                    // The other branch of the select takes it.
                    std::future::pending::<()>().await;
                }
                // Before it may take the key from a holder that looks dead, this replica must
                // have been renewed after that: so the backend knows that its clock is right.
                Ok(Reply::Queued { remaining: Duration::ZERO, .. }) => {
                    remaining = match self.renew_again(session).await {
                        Ok(()) => Duration::ZERO,
                        Err(_) => SECOND,
                    };
                }
                Ok(Reply::Queued { remaining: left, .. }) => remaining = left,
                Ok(Reply::Superseded) => {
                    self.tickets.lose(sequence, LossReason::Superseded);
                    std::future::pending::<()>().await;
                }
                Ok(Reply::NoSession) => {
                    self.doubt.notify_one();
                    remaining = SECOND;
                }
                Err(BackendError::Unfit(_)) => return Settled::Lost(LossReason::Superseded),
                // Repeated with the next poll.
                Ok(_) | Err(_) => remaining = SECOND,
            }
        }
    }

    /// How long a ticket that has waited for so long relies on pushes: a lost one costs the least
    /// poll or a tenth of the wait, whatever is longer, unless very many wait.
    fn safety_pause(&self, waited: Duration) -> Duration {
        let waiting = u32::try_from(self.tickets.lines()).unwrap_or(u32::MAX);
        let share = BETWEEN_POLLS.saturating_mul(waiting);
        (waited / 10).min(SAFETY_POLL).max(self.settings.max_poll()).max(share)
    }
}

/// Spreads polls that are due at the same moment over 10 to 50 ms.
const fn jitter(sequence: u64) -> Duration {
    Duration::from_millis(10 + sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 40)
}
