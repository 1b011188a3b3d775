use std::time::Duration;

use botmesh_core::error::BoxError;
use botmesh_core::store::StoreError;
use thiserror::Error;

/// What a caller can do about an error of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The backend does not answer. Whether the statement was applied is not known.
    Unavailable,
    /// Another holds the backend; the driver waited this long. Nothing was applied.
    Busy(Duration),
    /// No room is left. Nothing was applied.
    Full,
    /// The backend or the operating system refuses, for this reason, with what to do about it.
    Refused(String),
    /// What the backend holds cannot be read.
    Corrupt,
    /// Anything else.
    Other,
}

/// An error of a driver, classified.
#[derive(Debug, Error)]
#[error("{source}")]
pub struct DriverError {
    fault: Fault,
    source: BoxError,
}

impl DriverError {
    /// An error of this kind.
    pub fn new(fault: Fault, source: impl Into<BoxError>) -> Self {
        Self { fault, source: source.into() }
    }

    /// What a caller can do about it.
    #[must_use]
    pub const fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The error of the store `store`, which was asked to do `operation`.
    #[must_use]
    pub fn into_store_error(self, store: &'static str, operation: &'static str) -> StoreError {
        let source = self.source;
        match self.fault {
            Fault::Unavailable => StoreError::Unavailable { store, operation, source },
            Fault::Busy(waited) => StoreError::Busy { store, operation, waited },
            Fault::Full => StoreError::Full { store, operation, source },
            Fault::Refused(reason) => StoreError::Refused { store, operation, reason },
            Fault::Corrupt => {
                StoreError::Corrupt { store, what: operation, detail: source.to_string() }
            }
            Fault::Other => StoreError::Backend { store, operation, source },
        }
    }
}
