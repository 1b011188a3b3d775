use std::collections::{BTreeMap, HashMap};
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
    /// The one timer of each chat for a stored conversation.
    stored: HashMap<ChatKey, TimerId>,
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

impl TimerId {
    /// Whether this timer is over by `moment`.
    pub(crate) fn is_over_by(self, moment: Instant) -> bool {
        self.at <= moment
    }
}

impl Timers {
    pub(crate) fn arm(&self, after: Duration, wake: Wake) -> TimerId {
        let at = deadline(after);
        let (id, first) = self.pending.lock().insert(at, wake);
        if first {
            self.earlier.notify_one();
        }
        id
    }

    /// Arms the timer for the stored conversation of a chat. There is one for each chat, the
    /// earliest: whoever is woken too early arms it again.
    pub(crate) fn arm_stored(&self, after: Duration, chat: ChatKey) {
        let at = deadline(after);
        let first = {
            let mut pending = self.pending.lock();
            match pending.stored.get(&chat).copied() {
                Some(earlier) if earlier.at <= at => return,
                Some(later) => pending.wakes.remove(&later),
                None => None,
            };
            let wake = Wake { chat: chat.clone(), reason: WakeReason::Stored };
            let (id, first) = pending.insert(at, wake);
            pending.stored.insert(chat, id);
            first
        };
        if first {
            self.earlier.notify_one();
        }
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
                    biased;
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
        if at > Instant::now() {
            return Err(Some(at));
        }
        let wake = first.remove();
        if wake.reason == WakeReason::Stored {
            pending.stored.remove(&wake.chat);
        }
        Ok(wake)
    }
}

impl Pending {
    /// Answers also whether the new timer is the first of all.
    fn insert(&mut self, at: Instant, wake: Wake) -> (TimerId, bool) {
        self.last += 1;
        let id = TimerId { at, number: self.last };
        self.wakes.insert(id, wake);
        (id, self.wakes.first_key_value().is_some_and(|(first, _)| *first == id))
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
    async fn a_chat_has_one_timer_for_its_stored_conversation_the_earliest() {
        let timers = Timers::default();
        let begun = Instant::now();
        for seconds in [30, 20, 40] {
            timers.arm_stored(Duration::from_secs(seconds), wake("ana").chat);
        }
        assert_eq!(timers.due().await, wake("ana"));
        assert_eq!(begun.elapsed().as_secs(), 20);
        timers.arm_stored(Duration::from_secs(50), wake("ana").chat);
        assert_eq!(timers.due().await, wake("ana"));
        assert_eq!(begun.elapsed().as_secs(), 70);
        let more = tokio::time::timeout(Duration::from_secs(3600), timers.due()).await;
        assert!(more.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_beyond_all_time_does_not_overflow() {
        let timers = Timers::default();
        timers.arm(Duration::MAX, wake("never"));
        let due = tokio::time::timeout(Duration::from_secs(3600), timers.due()).await;
        assert!(due.is_err());
    }
}
