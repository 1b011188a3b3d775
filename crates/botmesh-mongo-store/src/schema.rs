//! The collections and their indexes.

use std::time::Duration;

use botmesh_core::store::{FENCE_MEMORY, StoreError};
use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::options::{CommitQuorum, IndexOptions, ReturnDocument};

use crate::failure::{NAME, refused};
use crate::row;
use crate::store::{MongoStore, Repeat};

pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const CHECKPOINTS: &str = "checkpoints";
pub(crate) const LOCKS: &str = "locks";
/// A row for each part of the schema, with its version.
pub(crate) const META: &str = "meta";

/// The version of the collections and rows that this code writes.
///
/// The second one has the inboxes of the chats in the rows of their checkpoints.
const VERSION: u64 = 2;

const OPERATION: &str = "prepare";

/// How long one step of a migration may take, in which indexes may be built.
const MIGRATION: Duration = Duration::from_secs(60);

/// NamespaceExists
const EXISTS: i32 = 48;

/// One kind of rows, each in a collection of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How long after its `ends_at` a row is deleted by the server, which looks once a minute;
    /// rows without that stay.
    pub(crate) forget: Option<Duration>,
}

const STORE: &[Kind] = &[
    Kind { name: DOCUMENTS, forget: Some(FENCE_MEMORY) },
    Kind { name: CHECKPOINTS, forget: Some(FENCE_MEMORY) },
    Kind { name: LOCKS, forget: Some(FENCE_MEMORY) },
];

/// Creates what is missing. Each step may be repeated, and done by many at once; whoever sees the
/// version has everything that belongs to it.
pub(crate) async fn prepare(store: &MongoStore) -> Result<(), StoreError> {
    prepare_part(store, "schema", VERSION, STORE).await
}

/// The same for a part with a version of its own.
pub(crate) async fn prepare_part(
    store: &MongoStore,
    part: &str,
    supported: u64,
    kinds: &[Kind],
) -> Result<(), StoreError> {
    let filter = doc! { "_id": part };
    let wanted = doc! { "version": 1 };
    let found = store.find(OPERATION, META, filter, wanted.clone()).await?;
    let found = found.map_or(Ok(0), |row| version(&row))?;
    check(found, supported)?;
    if found == supported {
        return Ok(());
    }
    for kind in kinds.iter().map(|kind| kind.name).chain([META]) {
        create(store, kind).await?;
    }
    for kind in kinds {
        index(store, *kind).await?;
    }
    // A newer release may have been faster: its version stays.
    let supported_number = i64::try_from(supported).unwrap_or(i64::MAX);
    let attempt = || async {
        let rows = store.connections().collection(META).await?;
        let writing = rows
            .find_one_and_update(
                doc! { "_id": part },
                doc! { "$max": { "version": supported_number } },
            )
            .upsert(true)
            .return_document(ReturnDocument::After);
        match store.connections().run(writing.into_future()).await {
            // Another one made the row at the same moment; the next attempt finds it.
            Err(failure) if failure.is_duplicate() => Ok(None),
            done => done,
        }
    };
    loop {
        if let (Some(row), _) = store.insist(OPERATION, Repeat::Freely, attempt).await? {
            let prefix = &store.connections().settings().prefix;
            tracing::info!(store = NAME, %prefix, part, version = supported, "schema migrated");
            return check(version(&row)?, supported);
        }
    }
}

fn version(row: &Document) -> Result<u64, StoreError> {
    row::number(row, "a schema version", "version")
}

fn check(found: u64, supported: u64) -> Result<(), StoreError> {
    if found > supported {
        return Err(StoreError::NewerSchema { store: NAME, found, supported });
    }
    Ok(())
}

/// Creates a collection. One that is there already must tell its keys apart byte by byte.
async fn create(store: &MongoStore, kind: &str) -> Result<(), StoreError> {
    let name = store.connections().settings().prefix.collection(kind);
    let name = name.as_str();
    let attempt = || async move {
        let database = store.connections().database().await?;
        let creating =
            database.create_collection(name).write_concern(store.connections().write_concern());
        match store.connections().run_within(MIGRATION, creating.into_future()).await {
            Err(failure) if failure.code() == Some(EXISTS) => Ok(true),
            done => done.map(|()| false),
        }
    };
    let (is_old, _) = store.insist(OPERATION, Repeat::Freely, attempt).await?;
    if !is_old {
        return Ok(());
    }
    let attempt = || async move {
        let database = store.connections().database().await?;
        let listing = async move {
            let mut listed = database.list_collections().filter(doc! { "name": name }).await?;
            let mut found = Vec::new();
            while listed.advance().await? {
                found.push(listed.deserialize_current()?);
            }
            Ok(found)
        };
        store.connections().run(listing).await
    };
    let (listed, _) = store.insist(OPERATION, Repeat::Freely, attempt).await?;
    if listed.iter().any(|one| one.options.collation.is_some()) {
        let reason = format!(
            "the collection `{name}` has a collation, under which keys that differ may be the \
             same: drop it, or choose another prefix"
        );
        return Err(refused(OPERATION, reason));
    }
    Ok(())
}

/// Creates the indexes of a collection; one that is there already is left as it is.
async fn index(store: &MongoStore, kind: Kind) -> Result<(), StoreError> {
    let indexes = &indexes(kind);
    if indexes.is_empty() {
        return Ok(());
    }
    let attempt = || async move {
        let rows = store.connections().collection(kind.name).await?;
        let creating =
            rows.create_indexes(indexes.clone()).commit_quorum(CommitQuorum::VotingMembers);
        store.connections().run_within(MIGRATION, creating.into_future()).await
    };
    store.insist::<_, _>(OPERATION, Repeat::Freely, attempt).await.map(drop)
}

fn indexes(kind: Kind) -> Vec<IndexModel> {
    let named = |name: &str| IndexOptions::builder().name(name.to_owned()).build();
    let mut indexes = Vec::new();
    if let Some(forget) = kind.forget {
        let mut options = named("ends");
        options.expire_after = Some(forget);
        indexes.push(IndexModel::builder().keys(doc! { "ends_at": 1 }).options(options).build());
    }
    if kind.name == CHECKPOINTS {
        let mut options = named("wakes");
        options.partial_filter_expression = Some(doc! { "wake_at": { "$type": "date" } });
        let keys = doc! { "wake_at": 1, "_id": 1 };
        indexes.push(IndexModel::builder().keys(keys).options(options).build());
        for (field, keys) in [
            ("lease_at", doc! { "provider": 1, "lease_at": 1 }),
            ("claim_at", doc! { "claim_at": 1 }),
            ("done_at", doc! { "done_at": 1 }),
            ("dead_at", doc! { "_id": 1, "dead_at": 1 }),
        ] {
            let mut options = named(field);
            options.partial_filter_expression = Some(doc! { field: { "$type": "date" } });
            indexes.push(IndexModel::builder().keys(keys).options(options).build());
        }
    }
    indexes
}
