use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::id::ChatKey;

/// When a chat has to be woken, the earliest first. One task waits for all of them.
#[derive(Default)]
pub(crate) struct Timers {
    pending: Mutex<Pending>,
    earlier: Notify,
}

#[derive(Default)]
struct Pending {
    wakes: BTreeMap<TimerId, Wake>,
    last: u64,
}

/// Names one timer; ordered by its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    at: Instant,
    number: u64,
}

/// A chat that has to be woken, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) chat: ChatKey,
    pub(crate) reason: WakeReason,
}

/// Why a chat is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The wait of this conversation has lasted as long as it may, or its rest is over.
    Deadline { run: u64, wait: u32 },
    /// The user has been silent in this wait.
    Idle { run: u64, wait: u32 },
    /// A stored conversation that is not in memory has to go on.
    Stored,
}

impl Timers {
    pub(crate) fn arm(&self, after: Duration, wake: Wake) -> TimerId {
        let at = deadline(after);
        let (id, first) = {
            let mut pending = self.pending.lock();
            pending.last += 1;
            let id = TimerId { at, number: pending.last };
            pending.wakes.insert(id, wake);
            (id, pending.wakes.first_key_value().is_some_and(|(first, _)| *first == id))
        };
        if first {
            self.earlier.notify_one();
        }
        id
    }

    pub(crate) fn disarm(&self, id: TimerId) {
        self.pending.lock().wakes.remove(&id);
    }

    /// Waits for the next wake-up that is due. Safe to cancel.
    pub(crate) async fn due(&self) -> Wake {
        loop {
            let earlier = self.earlier.notified();
            let first = match self.take_due() {
                Ok(wake) => return wake,
                Err(first) => first,
            };
            match first {
                None => earlier.await,
                Some(at) => tokio::select! {
                    () = earlier => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    /// The first wake-up if it is due, else the moment when it will be.
    fn take_due(&self) -> Result<Wake, Option<Instant>> {
        let mut pending = self.pending.lock();
        let Some(first) = pending.wakes.first_entry() else { return Err(None) };
        let at = first.key().at;
        if at <= Instant::now() { Ok(first.remove()) } else { Err(Some(at)) }
    }
}

/// The moment `after` from now, or thirty years from now if that is later than can be told.
fn deadline(after: Duration) -> Instant {
    let far = Duration::from_secs(30 * 365 * 24 * 3600);
    Instant::now() + after.min(far)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ProviderId;

    fn wake(chat: &str) -> Wake {
        let provider = ProviderId::new("test").unwrap();
        Wake { chat: ChatKey::new(&provider, chat).unwrap(), reason: WakeReason::Stored }
    }

    #[tokio::test(start_paused = true)]
    async fn wakes_come_in_the_order_of_their_moments_whatever_the_order_of_arming() {
        let timers = Timers::default();
        let begun = Instant::now();
        timers.arm(Duration::from_secs(20), wake("late"));
        let gone = timers.arm(Duration::from_secs(15), wake("disarmed"));
        timers.arm(Duration::from_secs(10), wake("early"));
        timers.disarm(gone);
        assert_eq!(timers.due().await, wake("early"));
        assert_eq!(begun.elapsed().as_secs(), 10);
        assert_eq!(timers.due().await, wake("late"));
        assert_eq!(begun.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_timer_that_is_armed_later_is_not_overslept() {
        let timers = std::sync::Arc::new(Timers::default());
        timers.arm(Duration::from_secs(1000), wake("late"));
        let waiting = tokio::spawn({
            let timers = std::sync::Arc::clone(&timers);
            async move { timers.due().await }
        });
        tokio::task::yield_now().await;
        let begun = Instant::now();
        timers.arm(Duration::from_secs(1), wake("early"));
        assert_eq!(waiting.await.unwrap(), wake("early"));
        assert_eq!(begun.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_beyond_all_time_does_not_overflow() {
        let timers = Timers::default();
        timers.arm(Duration::MAX, wake("never"));
        let due = tokio::time::timeout(Duration::from_secs(3600), timers.due()).await;
        assert!(due.is_err());
    }
}
