//! Waiting when Telegram says that too much was sent.
//!
//! It answers a send that is too much with 429 and the seconds to wait, for one chat or for the bot
//! as a whole, without saying which: <https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this>.
//! So a chat waits for itself, and when a second chat is told to wait meanwhile, all do. Whoever
//! sends to one chat does so one after the other, so that no later message passes one that waits.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// Chats that nobody sends to any more are forgotten when there are so many more of them.
const SWEEP: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<i64, Weak<tokio::sync::Mutex<()>>>,
    sweep_at: usize,
    paused: HashMap<i64, Instant>,
    all: Option<Instant>,
}

/// The right to send to a chat: the next in line waits until it is dropped.
#[must_use]
pub(crate) struct Place {
    _queue: OwnedMutexGuard<()>,
}

impl Pace {
    /// Waits until nobody else sends to the chat; whoever comes first goes first.
    pub(crate) async fn enter(&self, chat: i64) -> Place {
        let queue = self.state.lock().queue(chat);
        Place { _queue: queue.lock_owned().await }
    }

    /// How long the chat has to wait; none when it may send.
    pub(crate) fn wait(&self, chat: i64) -> Option<Duration> {
        let state = self.state.lock();
        let until = state.paused.get(&chat).copied().max(state.all)?;
        Some(until.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    /// Telegram told this chat to wait.
    pub(crate) fn limited(&self, chat: i64, wait: Duration) {
        let now = Instant::now();
        // A wait beyond what the clock can say is as good as one of a day.
        let until = now + wait.min(Duration::from_secs(86_400));
        let mut state = self.state.lock();
        state.paused.retain(|_, until| *until > now);
        if state.paused.keys().any(|other| *other != chat) {
            state.all = state.all.max(Some(until));
        }
        state.paused.insert(chat, until);
    }
}

impl State {
    fn queue(&mut self, chat: i64) -> Arc<tokio::sync::Mutex<()>> {
        if let Some(queue) = self.queues.get(&chat).and_then(Weak::upgrade) {
            return queue;
        }
        if self.queues.len() >= self.sweep_at {
            self.queues.retain(|_, queue| queue.strong_count() > 0);
            self.sweep_at = self.queues.len() + SWEEP;
        }
        let queue = Arc::default();
        self.queues.insert(chat, Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// I1: a chat that has to wait delays no other; two that have to make all wait.
    #[tokio::test(start_paused = true)]
    async fn one_limited_chat_waits_alone_and_two_make_all_wait() {
        let pace = Pace::default();
        pace.limited(1, 5 * SECOND);
        assert_eq!(pace.wait(1), Some(5 * SECOND));
        assert_eq!(pace.wait(2), None);
        pace.limited(2, 3 * SECOND);
        assert_eq!(pace.wait(3), Some(3 * SECOND));
        assert_eq!(pace.wait(1), Some(5 * SECOND));
        tokio::time::advance(3 * SECOND).await;
        assert_eq!((pace.wait(2), pace.wait(3)), (None, None));
        tokio::time::advance(2 * SECOND).await;
        assert_eq!(pace.wait(1), None);
    }

    /// I1: sends to one chat keep their order, whoever waits.
    #[tokio::test(start_paused = true)]
    async fn sends_to_a_chat_keep_their_order() {
        let pace = Arc::new(Pace::default());
        let first = pace.enter(1).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..5 {
            let (pace, order) = (Arc::clone(&pace), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _place = pace.enter(1).await;
                tokio::task::yield_now().await;
                order.lock().push(number);
            }));
            tokio::task::yield_now().await;
        }
        assert!(order.lock().is_empty());
        let _other = pace.enter(2).await;
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), [0, 1, 2, 3, 4]);
    }

    /// A1: chats that are quiet cost no memory.
    #[tokio::test]
    async fn quiet_chats_are_forgotten() {
        let pace = Pace::default();
        for chat in 0..10_000 {
            drop(pace.enter(chat).await);
        }
        assert!(pace.state.lock().queues.len() <= SWEEP + 1);
    }
}
