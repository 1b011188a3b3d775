//! Suites that show whether an implementation keeps the contracts of this crate (feature
//! `testing`).
//!
//! A suite is a list of cases. Each is an async function that gets a fixture, works in a space of
//! its own and says what it found; a macro makes one named test of each:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use botmesh_core::conformance::StoreFixture;
//! use botmesh_core::store::Store;
//! # use botmesh_core::MemoryStore as MyStore;
//! # trait Connect: Sized { fn connect(_: &str) -> Self; }
//! # impl Connect for MyStore { fn connect(_: &str) -> Self { MyStore::new() } }
//!
//! #[derive(Debug)]
//! struct MyFixture;
//!
//! #[async_trait]
//! impl StoreFixture for MyFixture {
//!     async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
//!         Some(Arc::new(MyStore::connect(prefix)))
//!     }
//! }
//!
//! mod conformance {
//!     botmesh_core::store_conformance!(super::MyFixture);
//! }
//! ```
//!
//! The cases may become stricter with any release: an implementation that passed may fail then.

mod case;
pub mod checkpoint;
pub mod commit;
pub mod coordinator;
pub mod crash;
pub mod differential;
pub mod document;
pub mod fence;
pub mod inbox;
pub mod likeness;
pub mod lock;
mod macros;
pub mod order;
pub mod provider;
pub mod recovery;
mod samples;
pub mod store;
#[cfg(test)]
mod tests;
pub mod told;
pub mod wake;

pub use case::{CaseError, finish};
pub use coordinator::{COORDINATOR_CASES, CoordinatorCase, CoordinatorFixture, Replica};
pub use provider::{
    Failure, PROVIDER_CASES, Played, ProviderCase, ProviderFixture, Received, ReceivedMessage,
};
pub use store::{CaseRun, STORE_CASES, StoreCase, StoreFixture};
