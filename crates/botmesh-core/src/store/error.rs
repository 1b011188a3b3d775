use std::time::Duration;

use thiserror::Error;

use crate::error::BoxError;

/// Why a store could not do what it was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The backend does not answer, or not in time. The store tries again by itself with the next
    /// call; whether the operation was applied is not known.
    #[error(
        "the {store} store is unavailable ({operation}): check that its server runs and is reachable"
    )]
    Unavailable {
        /// The store's name.
        store: &'static str,
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: BoxError,
    },
    /// Another process holds the backend for longer than the store waits.
    #[error(
        "the {store} store is busy ({operation}): another process held it for longer than {waited:?}"
    )]
    Busy {
        /// The store's name.
        store: &'static str,
        /// What was asked.
        operation: &'static str,
        /// How long the store waited.
        waited: Duration,
    },
    /// There is no room for what was to be written.
    #[error("the {store} store is full ({operation}): free some room; nothing was written")]
    Full {
        /// The store's name.
        store: &'static str,
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: BoxError,
    },
    /// The backend refuses writes or the credentials.
    #[error("the {store} store refused {operation}: {reason}")]
    Refused {
        /// The store's name.
        store: &'static str,
        /// What was asked.
        operation: &'static str,
        /// Why, with what to do.
        reason: String,
    },
    /// The schema was made by a newer version of botmesh.
    #[error(
        "the {store} store has schema version {found}, this program knows up to {supported}: upgrade the program"
    )]
    NewerSchema {
        /// The store's name.
        store: &'static str,
        /// The version at the backend.
        found: u64,
        /// The newest version that this code knows.
        supported: u64,
    },
    /// What was read is not what this store writes.
    #[error("the {store} store holds {what} that it cannot read: {detail}")]
    Corrupt {
        /// The store's name.
        store: &'static str,
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// A key or a value that this backend cannot hold.
    #[error("the {store} store cannot hold this {what}: {reason}")]
    Unfit {
        /// The store's name.
        store: &'static str,
        /// What was to be written.
        what: &'static str,
        /// Why, with the limit.
        reason: String,
    },
    /// Any other error of the backend.
    #[error("the {store} store failed ({operation})")]
    Backend {
        /// The store's name.
        store: &'static str,
        /// What was asked.
        operation: &'static str,
        /// What the driver said.
        #[source]
        source: BoxError,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody's help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy { .. })
    }
}
