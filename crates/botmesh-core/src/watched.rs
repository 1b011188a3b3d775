//! A value whose changes can be waited for.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A value that many may watch. Clones are the same value.
///
/// It does what `tokio::sync::watch` does, but whoever waits is woken in the order of their waiting.
/// There the order is random, and no run of a simulation would go the same way twice.
#[derive(Debug)]
pub(crate) struct Watched<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    version: u64,
    value: T,
}

/// Sees the changes of a [`Watched`] value.
#[derive(Debug)]
pub(crate) struct Watcher<T> {
    of: Watched<T>,
    seen: u64,
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self { of: self.of.clone(), seen: self.seen }
    }
}

impl<T: Clone> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        let state = Mutex::new(State { version: 0, value });
        Self(Arc::new(Inner { state, changed: Notify::new() }))
    }

    pub(crate) fn get(&self) -> T {
        self.0.state.lock().value.clone()
    }

    /// Puts `value` in place of the present one, which is answered.
    pub(crate) fn replace(&self, value: T) -> T {
        self.modify(|present| std::mem::replace(present, value))
    }

    /// Changes the value.
    pub(crate) fn modify<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = {
            let mut state = self.0.state.lock();
            state.version += 1;
            change(&mut state.value)
        };
        self.0.changed.notify_waiters();
        result
    }

    /// Watches it from now on.
    pub(crate) fn watch(&self) -> Watcher<T> {
        Watcher { seen: self.0.state.lock().version, of: self.clone() }
    }
}

impl<T: Clone> Watcher<T> {
    /// The present value, which counts as seen.
    pub(crate) fn get(&mut self) -> T {
        let state = self.of.0.state.lock();
        self.seen = state.version;
        state.value.clone()
    }

    /// Waits until there is a value that was not seen. Safe to cancel.
    pub(crate) async fn changed(&self) {
        let mut changed = std::pin::pin!(self.of.0.changed.notified());
        // Registered before the look, so that a change between the two is not missed.
        changed.as_mut().enable();
        if self.of.0.state.lock().version == self.seen {
            changed.await;
        }
    }

    /// Waits until the value is `wanted`; a present one that is counts too. Safe to cancel.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&T) -> bool) -> T {
        loop {
            let value = self.get();
            if wanted(&value) {
                return value;
            }
            self.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_woken_in_the_order_of_their_waiting() {
        let value = Watched::new(0);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..50)
            .map(|number| {
                let (mut watcher, woken) = (value.watch(), Arc::clone(&woken));
                tokio::spawn(async move {
                    watcher.wait_for(|value| *value == 1).await;
                    woken.lock().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        value.replace(1);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_change_before_the_waiting_is_not_missed() {
        let value = Watched::new(0);
        let mut watcher = value.watch();
        assert_eq!(watcher.get(), 0);
        assert_eq!(value.replace(1), 0);
        watcher.changed().await;
        assert_eq!((watcher.get(), value.get()), (1, 1));
        let again = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(again, watcher.changed()).await.is_err());
    }
}
