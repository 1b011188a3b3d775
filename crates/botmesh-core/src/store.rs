//! What a bot keeps: documents of chats and users, checkpoints of conversations, fenced locks, the
//! journal of what came in.
//!
//! A store implements [`Store`] and says through its accessors what it can. All conditions are
//! decided by the backend in one atomic step, and all times are told by the backend's clock: a
//! caller gives and receives durations, never moments of its own clock.

mod checkpoint;
mod document;
mod error;
mod inbox;
mod lock;
mod memory;
mod realm;

pub use checkpoint::{
    Adopted, CheckpointStore, CheckpointWrite, ConditionalCheckpointStore, FENCE_MEMORY,
    StoredCheckpoint, Swap,
};
pub use document::{Collection, Document, DocumentStore};
pub use error::StoreError;
pub use inbox::{
    Admission, Begun, CheckpointChange, Commit, Committed, DeadLetter, InboxRecord, InboxStore,
    NewRecord, Postponement, Retention,
};
pub use lock::{FencedLock, LockStore, LockToken};
pub use memory::MemoryStore;
pub use realm::Realm;

use std::fmt::Debug;

use async_trait::async_trait;

/// A place where a bot keeps its state. Cheap to share: runtimes hold it as `Arc<dyn Store>`.
///
/// A wrapper around another store must forward every method; `#[deny(clippy::missing_trait_methods)]`
/// tells it when one is missing.
#[async_trait]
pub trait Store: DocumentStore + CheckpointStore + Debug + Send + Sync + 'static {
    /// A name for logs and messages, such as `sqlite`.
    fn name(&self) -> &'static str;

    /// Whether several processes, on several machines, see the same data through this store.
    fn is_shared(&self) -> bool;

    /// Whether what was written is still there after the process was killed.
    fn is_durable(&self) -> bool;

    /// Makes the store ready: connects, creates or migrates its schema. Called once when a bot
    /// starts; safe to repeat, and safe when many replicas do it at once.
    ///
    /// # Errors
    /// [`StoreError`] when the backend does not answer or its schema is newer than this code.
    async fn prepare(&self) -> Result<(), StoreError>;

    /// Compare-and-set of checkpoints. Without it only the local fence protects a checkpoint, and
    /// a bot with coordination warns at start.
    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore>;

    /// Locks with fences.
    fn locks(&self) -> Option<&dyn LockStore>;

    /// The journal of inbound messages. Without it a bot can have no durability.
    fn inbox(&self) -> Option<&dyn InboxStore>;
}
