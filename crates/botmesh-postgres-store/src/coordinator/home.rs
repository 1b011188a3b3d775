use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinError;

/// The runtime on which the connections of turns live. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Home(Arc<Mutex<Option<Handle>>>);

impl Home {
    /// Connections live on the caller's runtime from now on.
    pub(super) fn settle_here(&self) {
        *self.0.lock() = Some(Handle::current());
    }

    /// The runtime, if it was settled.
    pub(super) fn settled(&self) -> Option<Handle> {
        self.0.lock().clone()
    }

    /// The runtime; the caller's before it was settled.
    pub(super) fn handle(&self) -> Handle {
        self.settled().unwrap_or_else(Handle::current)
    }
}

/// Runs `work` on the runtime `home`: here, if that is the caller's.
pub(super) async fn run_at<T: Send + 'static>(
    home: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    if home.id() == Handle::current().id() { Ok(work.await) } else { home.spawn(work).await }
}
