use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::Revision;
use botmesh_core::store::{
    ConditionalCheckpointStore, InboxStore, LockStore, Store, StoreError, Swap,
};
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;
use tokio::time::Instant;

use crate::MongoStoreBuilder;
use crate::connections::Connections;
use crate::failure::{Failure, NAME, corrupt};
use crate::{cursor, row, schema, server};

/// The shortest and the longest pause before an operation is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How often an upsert is repeated that met another one for the same key. Each has made the row
/// that the next attempt finds.
const MEETINGS: usize = 8;

/// The largest document, less what a row has beside its key and its text.
/// <https://www.mongodb.com/docs/manual/reference/limits/#bson-documents>
const MAX_BYTES: usize = 16 * 1024 * 1024 - 16 * 1024;

/// A store in MongoDB.
///
/// Clones share its connections, which are opened when they are needed and again after they broke.
#[derive(Clone)]
pub struct MongoStore {
    inner: Arc<Inner>,
}

struct Inner {
    connections: Connections,
    durable: AtomicBool,
    warnings: Mutex<Vec<String>>,
    /// Marks the requests of this store.
    mark: String,
    requests: AtomicU64,
}

/// Whether an operation may be sent again when its outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It reads, or recognises what it has done before.
    Freely,
    /// It would undo what others did meanwhile.
    IfNotExecuted,
}

/// What came of an update.
#[derive(Debug)]
pub(crate) struct Updated {
    /// The row after it; none when no row fitted.
    pub(crate) row: Option<Document>,
    /// Whether an earlier attempt may have been applied, so that the row does not fit any more.
    pub(crate) is_doubtful: bool,
}

impl MongoStore {
    /// A store at a URL such as `mongodb://user:password@localhost:27017/bots` or
    /// `mongodb+srv://…`. Without a database it is `botmesh`.
    ///
    /// Whatever the URL says, writes wait for a majority and reads go to the primary.
    pub fn connect(url: impl AsRef<str>) -> MongoStoreBuilder {
        MongoStoreBuilder::at(url.as_ref())
    }

    /// A store in a database of a client that the program has already, as
    /// `client.database("bots")` gives it.
    pub fn over(database: Database) -> MongoStoreBuilder {
        MongoStoreBuilder::over(database)
    }

    pub(crate) fn new(connections: Connections) -> Self {
        let mut mark = botmesh_core::store::LockToken::random().as_str().to_owned();
        mark.truncate(16);
        let inner = Inner {
            connections,
            durable: AtomicBool::new(false),
            warnings: Mutex::default(),
            mark,
            requests: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What is not as it should be at the server, found by the last [`prepare`](Store::prepare).
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the connections, for all clones. A shared client stays open.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.inner.connections
    }

    /// A mark that no other request has: by it a repeated request is recognised.
    pub(crate) fn request(&self) -> String {
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:x}", self.inner.mark)
    }

    /// Reads one row.
    pub(crate) async fn find(
        &self,
        operation: &'static str,
        kind: &str,
        filter: Document,
        wanted: Document,
    ) -> Result<Option<Document>, StoreError> {
        let (filter, wanted) = (&filter, &wanted);
        let attempt = || async move {
            let rows = self.connections().collection(kind).await?;
            let finding = rows.find_one(filter.clone()).projection(wanted.clone());
            self.connections().run(finding.into_future()).await
        };
        self.insist(operation, Repeat::Freely, attempt).await.map(|(row, _)| row)
    }

    /// Reads through a pipeline.
    pub(crate) async fn aggregate(
        &self,
        operation: &'static str,
        kind: &str,
        pipeline: Vec<Document>,
    ) -> Result<Vec<Document>, StoreError> {
        let pipeline = &pipeline;
        let attempt = || async move {
            let rows = self.connections().collection(kind).await?;
            let reading = async move { cursor::all(rows.aggregate(pipeline.clone()).await?).await };
            self.connections().run(reading).await
        };
        self.insist(operation, Repeat::Freely, attempt).await.map(|(rows, _)| rows)
    }

    /// Changes the row that fits, and answers what is wanted of it.
    pub(crate) async fn update(
        &self,
        operation: &'static str,
        repeat: Repeat,
        kind: &str,
        filter: Document,
        pipeline: Vec<Document>,
        wanted: Document,
    ) -> Result<Updated, StoreError> {
        let (filter, pipeline, wanted) = (&filter, &pipeline, &wanted);
        let attempt = || async move {
            let rows = self.connections().collection(kind).await?;
            let updating = rows
                .find_one_and_update(filter.clone(), pipeline.clone())
                .projection(wanted.clone())
                .return_document(ReturnDocument::After);
            self.connections().run(updating.into_future()).await
        };
        let (row, is_doubtful) = self.insist(operation, repeat, attempt).await?;
        Ok(Updated { row, is_doubtful })
    }

    /// Changes all rows that fit. Repeated, it must do no harm.
    #[cfg(feature = "durability")]
    pub(crate) async fn update_all(
        &self,
        operation: &'static str,
        kind: &str,
        filter: Document,
        pipeline: Vec<Document>,
    ) -> Result<(), StoreError> {
        let (filter, pipeline) = (&filter, &pipeline);
        let attempt = || async move {
            let rows = self.connections().collection(kind).await?;
            let updating = rows.update_many(filter.clone(), pipeline.clone());
            self.connections().run(updating.into_future()).await
        };
        self.insist(operation, Repeat::Freely, attempt).await.map(drop)
    }

    /// Changes the row of this key, which is made if it is not there.
    pub(crate) async fn upsert(
        &self,
        operation: &'static str,
        repeat: Repeat,
        kind: &str,
        id: &str,
        pipeline: Vec<Document>,
        wanted: Document,
    ) -> Result<Document, StoreError> {
        let (pipeline, wanted) = (&pipeline, &wanted);
        let attempt = || async move {
            let rows = self.connections().collection(kind).await?;
            let mut meetings = 0;
            loop {
                let upserting = rows
                    .find_one_and_update(doc! { "_id": id }, pipeline.clone())
                    .projection(wanted.clone())
                    .return_document(ReturnDocument::After)
                    .upsert(true);
                match self.connections().run(upserting.into_future()).await {
                    Err(failure) if failure.is_duplicate() && meetings < MEETINGS => meetings += 1,
                    // So the stand-in of the tests may answer; what was done is recognised.
                    Ok(None) if meetings < MEETINGS => meetings += 1,
                    done => break done,
                }
            }
        };
        let (row, _) = self.insist(operation, repeat, attempt).await?;
        row.ok_or_else(|| corrupt("an answer", "an upsert gave no row"))
    }

    /// Makes a row by a pipeline that changes it only if it may be made. It was made if it has the
    /// mark of this request.
    pub(crate) async fn make(
        &self,
        operation: &'static str,
        kind: &str,
        id: &str,
        request: &str,
        pipeline: Vec<Document>,
    ) -> Result<Swap, StoreError> {
        let wanted = doc! { "revision": 1, "request": 1 };
        let row = self.upsert(operation, Repeat::Freely, kind, id, pipeline, wanted).await?;
        if row.get("request") != Some(&Bson::String(request.to_owned())) {
            return Ok(Swap::Refused);
        }
        row::revision(&row, "a row").map(Swap::Applied)
    }

    /// Changes the row that fits, and recognises it when an attempt whose answer was lost has done
    /// so already.
    pub(crate) async fn replace(
        &self,
        operation: &'static str,
        kind: &str,
        id: &str,
        request: &str,
        filter: Document,
        pipeline: Vec<Document>,
    ) -> Result<Swap, StoreError> {
        let wanted = doc! { "revision": 1 };
        let update =
            self.update(operation, Repeat::Freely, kind, filter, pipeline, wanted.clone()).await?;
        let row = match update.row {
            None if update.is_doubtful => {
                let filter = doc! { "_id": id, "request": request };
                self.find(operation, kind, filter, wanted).await?
            }
            row => row,
        };
        row.map_or(Ok(Swap::Refused), |row| row::revision(&row, "a row").map(Swap::Applied))
    }

    /// Repeats an operation while the server is away. Answers also whether an earlier attempt may
    /// have been applied.
    pub(crate) async fn insist<T, F>(
        &self,
        operation: &'static str,
        repeat: Repeat,
        attempt: impl Fn() -> F,
    ) -> Result<(T, bool), StoreError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let deadline = Instant::now() + self.connections().settings().patience;
        let (mut pause, mut is_doubtful) = (PAUSES.0, false);
        loop {
            let failure = match attempt().await {
                Ok(answer) => return Ok((answer, is_doubtful)),
                Err(failure) => failure,
            };
            is_doubtful |= !failure.is_unexecuted();
            let repeatable = repeat == Repeat::Freely || !is_doubtful;
            if !failure.is_transient() || !repeatable || Instant::now() + pause >= deadline {
                return Err(failure.into_store_error(operation));
            }
            tracing::debug!(operation, ?failure, ?pause, "the server is away, trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    pub(crate) async fn examine(&self) -> Result<(), StoreError> {
        let info = match server::examine(self).await {
            Err(StoreError::Unavailable { store, operation, source }) => {
                let why = server::why_no_primary(self.connections().settings()).await;
                return Err(why.unwrap_or(StoreError::Unavailable { store, operation, source }));
            }
            told => told?,
        };
        info.check()?;
        self.inner.durable.store(info.is_persistent(), Ordering::Relaxed);
        let warnings = info.warnings();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        *self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
        Ok(())
    }
}

/// Refuses a key and a text that no document can hold, before anything is sent.
pub(crate) fn check_size(key: &str, body: &str) -> Result<(), StoreError> {
    let bytes = key.len() + body.len();
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let what = if body.len() > key.len() { "body" } else { "key" };
    let reason = format!("key and body have {bytes} bytes, a document holds {MAX_BYTES} of them");
    Err(StoreError::Unfit { store: NAME, what, reason })
}

/// A revision as it is stored; one that no row has, if the number is none of ours.
pub(crate) fn stored(revision: Revision) -> i64 {
    i64::try_from(revision.get()).unwrap_or(-1)
}

impl fmt::Debug for MongoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MongoStore").field(self.connections().settings()).finish()
    }
}

#[async_trait]
impl Store for MongoStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_shared(&self) -> bool {
        true
    }

    /// Whether the server keeps its data on a disk, as the last [`prepare`](Store::prepare) found
    /// it; false before. Each write waits for the journals of a majority.
    fn is_durable(&self) -> bool {
        self.inner.durable.load(Ordering::Relaxed)
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.examine().await?;
        schema::prepare(self).await
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        Some(self)
    }

    #[cfg(feature = "durability")]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(self)
    }

    #[cfg(not(feature = "durability"))]
    fn inbox(&self) -> Option<&dyn InboxStore> {
        None
    }
}
