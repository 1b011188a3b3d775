//! Cases about a store as a whole, and what all store cases share.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Barrier;

use super::CaseError;
use super::case::{ABSENT, ensure, ensure_eq};
use crate::id::{ChatKey, Fence, Revision};
use crate::store::{
    CheckpointWrite, Collection, ConditionalCheckpointStore, InboxStore, LockStore, Store,
    StoreError, Swap,
};

/// Gives a suite the stores to try.
#[async_trait]
pub trait StoreFixture: Debug + Send + Sync {
    /// Opens the store on the data that belong to `prefix`, and makes them at first: each call is
    /// a further, independent handle to the same data. `prefix` has at most 16 characters of
    /// `a` to `z`, `0` to `9` and `_`. None when the backend is absent: then nothing is run.
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>>;

    /// Lets `time` pass for the backend. A fixture with a virtual clock advances that.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// One case of the suite of stores.
#[derive(Debug, Clone, Copy)]
pub struct StoreCase {
    /// The name of the case and of its test.
    pub name: &'static str,
    /// What it checks.
    pub promise: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a dyn StoreFixture) -> CaseRun<'a>,
}

/// A case that runs.
pub type CaseRun<'a> = Pin<Box<dyn Future<Output = Result<(), CaseError>> + 'a>>;

/// All cases of the suite, for those who do not run it by
/// [`store_conformance!`](crate::store_conformance).
pub const STORE_CASES: &[StoreCase] = crate::__store_cases!(@each list []);

/// The data of one case: nobody else has this prefix.
pub(super) struct Space<'a> {
    pub(super) fixture: &'a dyn StoreFixture,
    prefix: String,
}

impl<'a> Space<'a> {
    pub(super) fn new(fixture: &'a dyn StoreFixture) -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self { fixture, prefix: format!("c{}_", &random[..12]) }
    }

    /// A new handle, not yet prepared.
    pub(super) async fn handle(&self) -> Result<Arc<dyn Store>, CaseError> {
        self.fixture.open(&self.prefix).await.ok_or(CaseError::NotRun(ABSENT))
    }

    /// A new handle, ready for use.
    pub(super) async fn open(&self) -> Result<Arc<dyn Store>, CaseError> {
        let store = self.handle().await?;
        store.prepare().await?;
        Ok(store)
    }
}

pub(super) fn conditional(store: &dyn Store) -> Result<&dyn ConditionalCheckpointStore, CaseError> {
    store.conditional_checkpoints().ok_or(CaseError::NotRun("no compare-and-set of checkpoints"))
}

pub(super) fn locks(store: &dyn Store) -> Result<&dyn LockStore, CaseError> {
    store.locks().ok_or(CaseError::NotRun("no locks"))
}

pub(super) fn inbox(store: &dyn Store) -> Result<&dyn InboxStore, CaseError> {
    store.inbox().ok_or(CaseError::NotRun("no inbox"))
}

/// A chat whose platform calls it `chat`.
pub(super) fn chat(chat: &str) -> Result<ChatKey, CaseError> {
    let provider = crate::ProviderId::new("suite").map_err(|error| error.to_string());
    let key = provider.and_then(|id| ChatKey::new(&id, chat).map_err(|error| error.to_string()));
    key.map_err(CaseError::Violation)
}

/// A checkpoint that stays and wakes nobody.
pub(super) const fn body(body: &str) -> CheckpointWrite<'_> {
    CheckpointWrite { body, wake_in: None, expires_in: None }
}

/// The revision of a write that must have been applied.
pub(super) fn applied(swap: Swap, what: &str) -> Result<Revision, CaseError> {
    match swap {
        Swap::Applied(revision) => Ok(revision),
        Swap::Refused => Err(CaseError::Violation(format!("{what} was refused"))),
    }
}

/// Runs `work` at the same time from `tasks` tasks, spread over the handles.
pub(super) async fn at_once<T, W>(
    handles: &[Arc<dyn Store>],
    tasks: usize,
    work: impl Fn(Arc<dyn Store>, usize) -> W,
) -> Result<Vec<T>, CaseError>
where
    T: Send + 'static,
    W: Future<Output = Result<T, StoreError>> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(tasks));
    let start = |task| {
        let (barrier, work) =
            (Arc::clone(&barrier), work(Arc::clone(&handles[task % handles.len()]), task));
        tokio::spawn(async move {
            barrier.wait().await;
            work.await
        })
    };
    let running: Vec<_> = (0..tasks).map(start).collect();
    let mut results = Vec::with_capacity(tasks);
    for task in running {
        let result = task.await.map_err(|error| CaseError::Violation(error.to_string()))?;
        results.push(result?);
    }
    Ok(results)
}

/// B5: the schema is made by the store itself, safely when many start at once.
pub async fn many_handles_prepare_the_same_data_at_once_and_again(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let mut handles = Vec::new();
    for _ in 0..6 {
        handles.push(space.handle().await?);
    }
    at_once(&handles, 12, |store, _| async move { store.prepare().await }).await?;
    let saved = handles[0].save_document_if(Collection::Chats, "a", "kept", None).await?;
    let revision = applied(saved, "the first document")?;
    handles[1].prepare().await?;
    let read = space.open().await?.load_document(Collection::Chats, "a").await?;
    let read = read.map(|document| (document.revision, document.body));
    ensure_eq!(read, Some((revision, "kept".to_owned())), "after preparing again");
    Ok(())
}

/// B6: bots with different prefixes share a server and never meet.
pub async fn data_of_different_prefixes_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let (one, other) = (Space::new(fixture).open().await?, Space::new(fixture).open().await?);
    let key = chat("same")?;
    let saved = one.save_document_if(Collection::Users, "same", "1", None).await?;
    let revision = applied(saved, "a document")?;
    let write = CheckpointWrite { wake_in: Some(Duration::ZERO), ..body("1") };
    one.set_checkpoint(&key, write, Fence::new(9)).await?;
    ensure_eq!(other.load_document(Collection::Users, "same").await?, None, "the other document");
    ensure_eq!(other.load_checkpoint(&key).await?, None, "the other checkpoint");
    ensure_eq!(other.checkpoints_to_wake(Duration::MAX, 9).await?, [], "others to wake");
    let removed = other.remove_document_if(Collection::Users, "same", revision).await?;
    ensure_eq!(removed, Swap::Refused, "removal under the other prefix");
    other.clear_checkpoint(&key).await?;
    ensure!(one.load_checkpoint(&key).await?.is_some(), "cleared under another prefix");
    if let (Some(one), Some(other)) = (one.locks(), other.locks()) {
        let minute = Duration::from_secs(60);
        let first = one.acquire_lock_fenced("same", minute).await?;
        let second = other.acquire_lock_fenced("same", minute).await?;
        ensure!(first.is_some() && second.is_some(), "a lock is held for another prefix");
    }
    if let Some(other) = other.conditional_checkpoints() {
        let swap = other.set_checkpoint_if(&key, body("2"), None, Fence::new(1)).await?;
        applied(swap, "a write with a fence lower than that under another prefix")?;
    }
    Ok(())
}

/// B1: what one handle has written, another one reads at once.
pub async fn all_handles_see_the_same_data(fixture: &dyn StoreFixture) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let (one, other) = (space.open().await?, space.open().await?);
    let key = chat("a")?;
    for text in ["1", "2"] {
        let revision = one.set_checkpoint(&key, body(text), Fence::new(1)).await?;
        let read = other.load_checkpoint(&key).await?.map(|row| (row.revision, row.body));
        ensure_eq!(read, Some((revision, text.to_owned())), "through the other handle");
    }
    other.clear_checkpoint(&key).await?;
    ensure_eq!(one.load_checkpoint(&key).await?, None, "cleared through the other handle");
    Ok(())
}

/// B1: a durable store keeps everything when it is closed and opened again, fences included.
pub async fn a_durable_store_keeps_everything_when_opened_again(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let store = space.open().await?;
    if !store.is_durable() {
        return Err(CaseError::NotRun("not durable"));
    }
    let (kept, cleared) = (chat("kept")?, chat("cleared")?);
    let saved = store.save_document_if(Collection::Users, "u", "text", None).await?;
    let document = applied(saved, "a document")?;
    let hour = Some(Duration::from_secs(3600));
    let write = CheckpointWrite { body: "text", wake_in: hour, expires_in: hour };
    let revision = store.set_checkpoint(&kept, write, Fence::new(5)).await?;
    store.set_checkpoint(&cleared, body("text"), Fence::new(7)).await?;
    store.clear_checkpoint(&cleared).await?;
    let minute = Duration::from_secs(60);
    let mut fence = None;
    if let Some(locks) = store.locks() {
        fence = locks.acquire_lock_fenced("free", minute).await?;
        if let Some(lock) = &fence {
            ensure!(locks.release_lock("free", &lock.token).await?, "release of an own lock");
        }
        locks.acquire_lock_fenced("held", minute).await?;
    }
    drop(store);

    let store = space.open().await?;
    let read = store.load_document(Collection::Users, "u").await?;
    let read = read.map(|read| (read.revision, read.body));
    ensure_eq!(read, Some((document, "text".to_owned())), "the document");
    let read = store.load_checkpoint(&kept).await?;
    let read = read.map(|row| (row.revision, row.fence, row.body, row.wake_in.is_some()));
    ensure_eq!(read, Some((revision, Fence::new(5), "text".to_owned(), true)), "the checkpoint");
    if let Some(conditional) = store.conditional_checkpoints() {
        let late = conditional.set_checkpoint_if(&cleared, body("late"), None, Fence::new(6));
        ensure_eq!(late.await?, Swap::Refused, "a write below the fence of a cleared row");
    }
    if let (Some(locks), Some(before)) = (store.locks(), fence) {
        ensure_eq!(locks.acquire_lock_fenced("held", minute).await?, None, "a lock that is held");
        let again = locks.acquire_lock_fenced("free", minute).await?;
        ensure!(again.is_some_and(|lock| lock.fence > before.fence), "the fence did not grow");
    }
    Ok(())
}
