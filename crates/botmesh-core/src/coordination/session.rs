use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::{LeaseClock, LeaseMoment};
use super::error::LossReason;
use crate::id::IncarnationId;

/// The lease of one incarnation of a coordinator, as its own process sees it. All turns and
/// leaderships of the incarnation share it, so that one renewal renews them all.
///
/// It ends *before* the backend's view of it: the deadline counts from the moment before the
/// renewal was sent and keeps a [margin](SessionLease::margin). Once ended it stays so; the process
/// registers another incarnation.
pub struct SessionLease {
    incarnation: IncarnationId,
    clock: LeaseClock,
    length: Duration,
    /// The deadline, or below every moment the code of a loss: one load tells all.
    deadline: AtomicU64,
    changed: Notify,
}

impl SessionLease {
    /// The lease of `length` that `incarnation` registered with a request sent at `sent`.
    #[must_use]
    pub fn new(
        incarnation: IncarnationId,
        clock: LeaseClock,
        length: Duration,
        sent: LeaseMoment,
    ) -> Arc<Self> {
        let deadline = AtomicU64::new(sent.plus(length - Self::margin(length)).to_bits());
        Arc::new(Self { incarnation, clock, length, deadline, changed: Notify::new() })
    }

    /// How much earlier than the backend a lease of `length` ends here: a tenth of it within
    /// 250 ms and 2 s, and never more than half.
    #[must_use]
    pub fn margin(length: Duration) -> Duration {
        (length / 10).clamp(Duration::from_millis(250), Duration::from_secs(2)).min(length / 2)
    }

    /// Whose lease this is.
    #[must_use]
    pub fn incarnation(&self) -> &IncarnationId {
        &self.incarnation
    }

    /// What ended the lease, if it has ended.
    #[must_use]
    pub fn loss(&self) -> Option<LossReason> {
        self.loss_of(self.deadline.load(Ordering::Acquire))
    }

    fn loss_of(&self, bits: u64) -> Option<LossReason> {
        match LeaseMoment::from_bits(bits) {
            Some(deadline) if self.clock.now() < deadline => None,
            Some(_) => Some(LossReason::Expired),
            None => LossReason::decode(u8::try_from(bits).unwrap_or(0)),
        }
    }

    /// The time until the lease ends unless it is renewed; zero when it has ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        LeaseMoment::from_bits(self.deadline.load(Ordering::Acquire))
            .map_or(Duration::ZERO, |deadline| deadline.since(self.clock.now()))
    }

    /// Extends the lease by a renewal that was sent at `sent` and that the backend confirmed.
    /// Answers whether it still lives: one that has ended is not revived, and a late confirmation
    /// of an older renewal never shortens it.
    pub fn renew(&self, sent: LeaseMoment) -> bool {
        let deadline = sent.plus(self.length - Self::margin(self.length)).to_bits();
        let renewed = self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, |current| {
            self.loss_of(current).is_none().then_some(current.max(deadline))
        });
        renewed.is_ok()
    }

    /// Ends the lease. The first reason stays.
    pub fn end(&self, reason: LossReason) {
        let ended = self.deadline.fetch_update(Ordering::AcqRel, Ordering::Acquire, |current| {
            LeaseMoment::from_bits(current).map(|_| u64::from(reason.encode()))
        });
        if ended.is_ok() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until the lease has ended. Safe to cancel.
    pub async fn ended(&self) -> LossReason {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that an end between the two is not missed.
            changed.as_mut().enable();
            if let Some(reason) = self.loss() {
                return reason;
            }
            tokio::select! {
                biased;
                () = changed => {}
                // A renewal meanwhile makes this wake up early once, which is cheaper than
                // waking all waiters at each renewal.
                () = tokio::time::sleep(self.remaining()) => {}
            }
        }
    }
}

impl fmt::Debug for SessionLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLease")
            .field("incarnation", &self.incarnation)
            .field("remaining", &self.remaining())
            .field("loss", &self.loss())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ReplicaId;

    const LEASE: Duration = Duration::from_secs(15);
    const MARGIN: Duration = Duration::from_millis(1500);

    fn session(clock: LeaseClock, sent: LeaseMoment) -> Arc<SessionLease> {
        let incarnation = IncarnationId::fresh(&ReplicaId::new("a").unwrap());
        SessionLease::new(incarnation, clock, LEASE, sent)
    }

    /// C6: the local deadline counts from the moment before the renewal was sent, however late the
    /// confirmation comes.
    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_a_margin_before_the_backend_would_end_it() {
        let clock = LeaseClock::tokio();
        let sent = clock.now();
        tokio::time::advance(Duration::from_secs(10)).await;
        let session = session(clock, sent);
        assert_eq!(session.remaining(), Duration::from_secs(5) - MARGIN);
        assert_eq!(session.ended().await, LossReason::Expired);
        assert_eq!(clock.now().since(sent), LEASE - MARGIN);
    }

    /// C6: a lease that has ended is not revived by a confirmation that comes too late.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_has_ended_is_not_revived() {
        let clock = LeaseClock::tokio();
        let session = session(clock, clock.now());
        tokio::time::advance(Duration::from_secs(10)).await;
        let sent = clock.now();
        assert!(session.renew(sent));
        tokio::time::advance(LEASE).await;
        assert!(!session.renew(clock.now()), "the process stood still for too long");
        assert_eq!(session.loss(), Some(LossReason::Expired));
    }

    /// C6: deadlines never move backwards.
    #[tokio::test(start_paused = true)]
    async fn an_older_renewal_never_shortens_the_lease() {
        let clock = LeaseClock::tokio();
        let old = clock.now();
        tokio::time::advance(Duration::from_secs(3)).await;
        let session = session(clock, clock.now());
        assert!(session.renew(old));
        assert_eq!(session.remaining(), LEASE - MARGIN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_lease_outlives_its_first_deadline_and_keeps_its_first_loss() {
        let clock = LeaseClock::tokio();
        let session = session(clock, clock.now());
        let waiting = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.ended().await }
        });
        for _ in 0..10 {
            tokio::time::sleep(LEASE / 3).await;
            assert!(session.renew(clock.now()));
        }
        assert!(!waiting.is_finished());
        session.end(LossReason::Stopped);
        session.end(LossReason::Superseded);
        assert_eq!(waiting.await.unwrap(), LossReason::Stopped);
        assert!(!session.renew(clock.now()));
    }

    #[test]
    fn margins_are_bounded() {
        let margin = |millis| SessionLease::margin(Duration::from_millis(millis)).as_millis();
        assert_eq!(
            [margin(200), margin(1_000), margin(15_000), margin(60_000)],
            [100, 250, 1_500, 2_000]
        );
    }
}
