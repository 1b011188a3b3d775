//! The rows of the coordinator: the space in one, the turn of each key in one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::stored::{Change, LedgerStore, Revised, Snapshot, Write};
use botmesh_core::coordination::transition::{StoredSpace, StoredTurn};
use botmesh_core::error::BoxError;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::clock::Clock;
use super::known::Known;
use super::schema::{self, SPACE, TURNS};
use super::wire::{self, long};
use crate::MongoStore;
use crate::cursor;
use crate::failure::Failure;

/// The id of the only row of the space.
const ONLY: &str = "space";

/// Names the server's memory. What was confirmed is on the disks of a majority, so that an election
/// or a restart forgets nothing: there is only one run. Where everything was wiped the space is
/// absent, which begins with grace too.
pub(super) const SERVER: &str = "mongo";

/// Reads and writes rows over the connections of one runtime.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) store: MongoStore,
    /// How long an answer may take.
    pub(super) response: Duration,
    pub(super) known: Arc<Known>,
    /// Whose time counts, and in which run of the server.
    pub(super) clock: Arc<Mutex<(Clock, String)>>,
}

impl Rows {
    pub(super) fn new(store: MongoStore, response: Duration) -> Self {
        let clock = Arc::new(Mutex::new((Clock::Server, SERVER.to_owned())));
        Self { store, response, known: Arc::default(), clock }
    }

    /// The same rows over other connections.
    pub(super) fn over(&self, store: MongoStore) -> Self {
        Self { store, ..self.clone() }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.lock().0
    }

    pub(super) fn server(&self) -> String {
        self.clock.lock().1.clone()
    }

    pub(super) async fn turns(&self) -> Result<Collection<Document>, BackendError> {
        self.store.connections().collection(TURNS).await.map_err(unsent)
    }

    /// Waits for one operation.
    pub(super) async fn run<T>(
        &self,
        operation: impl Future<Output = Result<T, mongodb::error::Error>>,
    ) -> Result<T, Failure> {
        self.store.connections().run_within(self.response, operation).await
    }

    async fn look(&self, key: Option<&CoordinationKey>) -> Result<Vec<Document>, BackendError> {
        let prefix = &self.store.connections().settings().prefix;
        let joined = |kind: &str, id: &str, name: &str| {
            doc! { "$lookup": {
                "from": prefix.collection(kind),
                "pipeline": [{ "$match": { "_id": id } }],
                "as": name,
            } }
        };
        // Begins with a row that is always there, which the server's clock comes with.
        let mut pipeline = vec![
            doc! { "$match": { "_id": schema::PART } },
            doc! { "$project": { "now": "$$NOW" } },
            joined(SPACE, ONLY, "space"),
        ];
        pipeline.extend(key.map(|key| joined(TURNS, key.as_str(), "turn")));
        let rows =
            self.store.connections().collection(crate::schema::META).await.map_err(unsent)?;
        let reading = async move { cursor::all(rows.aggregate(pipeline).await?).await };
        // A look changes nothing, so its outcome does not matter.
        self.run(reading).await.map_err(unsent)
    }

    async fn write_space(&self, write: Write<'_, StoredSpace>) -> Result<bool, BackendError> {
        let mut row = wire::write_space(write.state, write.next).map_err(BackendError::Refused)?;
        let rows = self.store.connections().collection(SPACE).await.map_err(unsent)?;
        if write.expected == 0 {
            row.insert("_id", ONLY);
            return self.insert(&rows, row).await;
        }
        let expected = doc! { "_id": ONLY, "revision": long(write.expected) };
        let replacing = rows.replace_one(expected, row).into_future();
        let replaced = self.run(replacing).await.map_err(explain)?;
        Ok(replaced.matched_count == 1)
    }

    async fn write_turn(
        &self,
        key: &CoordinationKey,
        write: Write<'_, StoredTurn>,
    ) -> Result<bool, BackendError> {
        let written = wire::write_turn(write.state, write.next);
        let (mut set, unset) = written.map_err(BackendError::Refused)?;
        let rows = self.turns().await?;
        if write.expected == 0 {
            set.insert("_id", key.as_str());
            return self.insert(&rows, set).await;
        }
        let expected = doc! { "_id": key.as_str(), "revision": long(write.expected) };
        let mut update = doc! { "$set": set };
        if !unset.is_empty() {
            update.insert("$unset", unset);
        }
        let updating = rows.update_one(expected, update).into_future();
        let updated = self.run(updating).await.map_err(explain)?;
        Ok(updated.matched_count == 1)
    }

    async fn insert(
        &self,
        rows: &Collection<Document>,
        row: Document,
    ) -> Result<bool, BackendError> {
        match self.run(rows.insert_one(row).into_future()).await {
            Ok(_) => Ok(true),
            // Somebody else was first.
            Err(failure) if failure.is_duplicate() => Ok(false),
            Err(failure) => Err(explain(failure)),
        }
    }
}

#[async_trait]
impl LedgerStore for Rows {
    async fn read(&self, key: Option<&CoordinationKey>) -> Result<Snapshot, BackendError> {
        let begun = self.known.begin();
        let (clock, server) = self.clock.lock().clone();
        let mut found = self.look(key).await?;
        if found.is_empty() {
            // Somebody wiped everything; what was held is told by the grace that follows.
            schema::prepare(&self.store)
                .await
                .map_err(|error| BackendError::Refused(Box::new(error)))?;
            found = self.look(key).await?;
        }
        let corrupt = |what: &str| BackendError::Refused(format!("{what} is missing").into());
        let mut row = found.pop().ok_or_else(|| corrupt("the row of the schema"))?;
        let now = row.get_datetime("now").map_err(|_| corrupt("the server's time"))?;
        let now = clock.read(*now);
        let space = read_first(&mut row, "space").map_err(BackendError::Refused)?;
        let turn = read_first(&mut row, "turn").map_err(BackendError::Refused)?;
        let snapshot = Snapshot { now, server, space, turn };
        self.known.note(begun, &snapshot.space.state);
        Ok(snapshot)
    }

    async fn write(&self, change: Change<'_>) -> Result<bool, BackendError> {
        let space = change.space;
        let has_written = space.is_some();
        if let Some(write) = space {
            let state = write.state;
            if !self.write_space(write).await? {
                return Ok(false);
            }
            self.known.note(self.known.begin(), state);
        }
        let Some((key, write)) = change.turn else { return Ok(true) };
        match self.write_turn(key, write).await {
            // The space was written, so this is not as if nothing had been.
            Err(BackendError::Refused(source)) if has_written => Err(BackendError::Unknown(source)),
            written => written,
        }
    }
}

fn read_first<T>(row: &mut Document, name: &str) -> Result<Revised<T>, BoxError>
where
    T: DeserializeOwned + Default,
{
    let mut found = match row.remove(name) {
        Some(Bson::Array(found)) => found,
        _ => Vec::new(),
    };
    let first = match found.pop() {
        Some(Bson::Document(first)) => Some(first),
        _ => None,
    };
    wire::read(first)
}

/// What a failure means for an operation that may have written.
pub(super) fn explain(failure: Failure) -> BackendError {
    match failure.is_unexecuted() {
        true => unsent(failure),
        false => BackendError::Unknown(failure.into_source()),
    }
}

/// What it means where nothing can have been written.
pub(super) fn unsent(failure: Failure) -> BackendError {
    BackendError::Refused(failure.into_source())
}
