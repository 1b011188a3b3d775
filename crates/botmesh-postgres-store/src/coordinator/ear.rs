//! Listens for wake-ups on a connection of its own.

use std::time::Duration;

use botmesh_core::coordination::client::PushSink;
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::wire::read_wakeup;
use crate::failure::Failure;

/// The shortest and the longest pause before it connects again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Hears for one incarnation at a time.
#[derive(Debug, Default)]
pub(super) struct Ear(Mutex<Option<JoinHandle<()>>>);

/// What is listened for, and how.
pub(super) struct Hearing {
    pub(super) options: PgConnectOptions,
    pub(super) channel: String,
    pub(super) incarnation: IncarnationId,
    pub(super) sink: PushSink,
    /// How long an answer may take before the connection counts as broken.
    pub(super) response: Duration,
    /// How often it is tried out.
    pub(super) probe: Duration,
}

impl Ear {
    /// Listens from now on, in place of what was listened for before. Returns once it does so, or
    /// cannot for the moment.
    pub(super) async fn listen(&self, hearing: Hearing) -> Result<(), Failure> {
        let (begun, answer) = oneshot::channel();
        let task = tokio::spawn(hearing.hear(begun));
        if let Some(before) = self.0.lock().replace(task) {
            before.abort();
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::unsent(sqlx::Error::WorkerCrashed)),
        }
    }

    pub(super) fn close(&self) {
        if let Some(task) = self.0.lock().take() {
            task.abort();
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.close();
    }
}

impl Hearing {
    async fn hear(self, begun: oneshot::Sender<Result<(), Failure>>) {
        let mut begun = Some(begun);
        let mut tell = |how| {
            if let Some(begun) = begun.take() {
                // Whoever waited may have given up.
                let _ = begun.send(how);
            }
        };
        let mut pause = PAUSES.0;
        loop {
            match tokio::time::timeout(self.response, self.open()).await {
                Ok(Ok(mut listener)) => {
                    self.sink.connected();
                    tell(Ok(()));
                    pause = PAUSES.0;
                    self.take(&mut listener).await;
                    self.sink.disconnected();
                }
                Ok(Err(error)) => tell(Err(Failure::unsent(error))),
                Err(_) => tell(Err(Failure::silent(self.response, false))),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn open(&self) -> Result<PgListener, sqlx::Error> {
        // The driver's listener takes its connection from a pool.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        Ok(listener)
    }

    /// Takes wake-ups until the connection breaks.
    async fn take(&self, listener: &mut PgListener) {
        let mut probe = Instant::now() + self.probe;
        loop {
            let heard = tokio::time::timeout_at(probe, listener.try_recv()).await;
            match heard {
                Ok(Ok(Some(notification))) => {
                    if let Some(wakeup) = read_wakeup(notification.payload(), &self.incarnation) {
                        self.sink.wake(wakeup);
                    }
                }
                Ok(Ok(None) | Err(_)) => return,
                // A connection that is cut somewhere says nothing by itself.
                Err(_) => {
                    let alive = listener.execute(sqlx::raw_sql("SELECT 1"));
                    match tokio::time::timeout(self.response, alive).await {
                        Ok(Ok(_)) => probe = Instant::now() + self.probe,
                        _ => return,
                    }
                }
            }
        }
    }
}
