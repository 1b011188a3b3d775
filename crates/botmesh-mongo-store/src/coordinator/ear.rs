//! Listens for wake-ups by a change stream.

use std::time::Duration;

use botmesh_core::coordination::client::PushSink;
use botmesh_core::id::IncarnationId;
use mongodb::Collection;
use mongodb::bson::{Document, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ChangeStreamEvent;
use mongodb::error::Error;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::wire::read_wakeup;
use crate::failure::Failure;

/// The shortest and the longest pause before it listens again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How long the server waits for something to tell before it answers that there is nothing.
const AWAIT: Duration = Duration::from_secs(1);

/// What servers answer that are no members of a replica set.
const ONLY_REPLICA_SETS: i32 = 40_573;

/// Hears for one incarnation at a time.
#[derive(Debug, Default)]
pub(super) struct Ear(Mutex<Option<JoinHandle<()>>>);

/// What is listened for, and how.
pub(super) struct Hearing {
    pub(super) collection: Collection<Document>,
    pub(super) incarnation: IncarnationId,
    pub(super) sink: PushSink,
    /// How long an answer may take before the connection counts as broken.
    pub(super) response: Duration,
}

type Wakeups = ChangeStream<ChangeStreamEvent<Document>>;

impl Ear {
    /// Listens from now on, in place of what was listened for before. Returns once it does so, or
    /// cannot for the moment.
    pub(super) async fn listen(&self, hearing: Hearing) -> Result<(), Failure> {
        let (begun, answer) = oneshot::channel();
        let response = hearing.response;
        let task = tokio::spawn(hearing.hear(begun));
        if let Some(before) = self.0.lock().replace(task) {
            before.abort();
        }
        answer.await.unwrap_or(Err(Failure::Silent(response)))
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
                Ok(Ok(mut wakeups)) => {
                    self.sink.connected();
                    tell(Ok(()));
                    pause = PAUSES.0;
                    self.take(&mut wakeups).await;
                    self.sink.disconnected();
                }
                Ok(Err(error)) => {
                    let failure = Failure::new(error);
                    if failure.code() == Some(ONLY_REPLICA_SETS) {
                        // Tickets poll.
                        self.sink.disconnected();
                        tell(Ok(()));
                        return;
                    }
                    tell(Err(failure));
                }
                Err(_) => tell(Err(Failure::Silent(self.response))),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// From now on: what was told before is found by the polls that follow.
    async fn open(&self) -> Result<Wakeups, Error> {
        let own = doc! {
            "operationType": "insert",
            "fullDocument.to": self.incarnation.as_str(),
        };
        self.collection.watch().pipeline([doc! { "$match": own }]).max_await_time(AWAIT).await
    }

    /// Takes wake-ups until the connection breaks.
    async fn take(&self, wakeups: &mut Wakeups) {
        // A connection that is cut somewhere says nothing by itself.
        let limit = AWAIT + self.response;
        // A stream that the server has ended, because the collection was dropped, goes on to answer
        // that there is nothing.
        while wakeups.is_alive() {
            let heard = tokio::time::timeout(limit, wakeups.next_if_any()).await;
            let Ok(Ok(event)) = heard else { return };
            let Some(row) = event.and_then(|event| event.full_document) else { continue };
            match read_wakeup(&row) {
                Ok(wakeup) => self.sink.wake(wakeup),
                Err(error) => tracing::debug!(%error, "a wake-up cannot be read"),
            }
        }
    }
}
