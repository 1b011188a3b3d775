//! Connections that are being opened. When nobody waits for one any more it is opened all the same,
//! and the next one who needs a connection gets it: if each began anew, callers who give up sooner
//! than a busy server opens a connection would never have one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::Connection as _;
use tokio::task::JoinHandle;

use crate::lender::{Connection, Opener, TRUSTED};

/// An opening may take so long at least, however soon its callers give up.
const LEAST: Duration = Duration::from_secs(2);

/// A connection, and when it was opened.
type Opened<O> = Result<(Connection<O>, Instant), sqlx::Error>;

pub(crate) struct Openings<O: Opener> {
    opener: Arc<O>,
    /// How long one may take.
    limit: Duration,
    /// Those that nobody waits for.
    left: Mutex<Vec<JoinHandle<Opened<O>>>>,
}

impl<O: Opener> Openings<O> {
    pub(crate) fn new(opener: O, response: Duration) -> Self {
        Self { opener: Arc::new(opener), limit: response.max(LEAST), left: Mutex::default() }
    }

    /// The next connection: one that was left, if it is any good, else a new one.
    pub(crate) async fn next(&self) -> Result<Connection<O>, sqlx::Error> {
        while let Some(left) = self.take() {
            if let Ok((mut connection, since)) = self.wait(left).await
                && (since.elapsed() < TRUSTED || connection.ping().await.is_ok())
            {
                return Ok(connection);
            }
        }
        let (opener, limit) = (Arc::clone(&self.opener), self.limit);
        let opening = tokio::spawn(async move {
            let opened = tokio::time::timeout(limit, opener.open()).await;
            Ok((opened.unwrap_or(Err(sqlx::Error::PoolTimedOut))?, Instant::now()))
        });
        self.wait(opening).await.map(|(connection, _)| connection)
    }

    /// Leaves none to anybody.
    pub(crate) fn clear(&self) {
        self.left.lock().clear();
    }

    fn take(&self) -> Option<JoinHandle<Opened<O>>> {
        self.left.lock().pop()
    }

    async fn wait(&self, opening: JoinHandle<Opened<O>>) -> Opened<O> {
        let mut waiting = Waiting { openings: self, opening: Some(opening) };
        let Some(opening) = &mut waiting.opening else { return Err(sqlx::Error::WorkerCrashed) };
        let opened = opening.await;
        waiting.opening = None;
        // It ends otherwise only with its runtime.
        opened.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }
}

/// Leaves the opening to the next one when it is dropped meanwhile.
struct Waiting<'a, O: Opener> {
    openings: &'a Openings<O>,
    opening: Option<JoinHandle<Opened<O>>>,
}

impl<O: Opener> Drop for Waiting<'_, O> {
    fn drop(&mut self) {
        self.openings.left.lock().extend(self.opening.take());
    }
}
