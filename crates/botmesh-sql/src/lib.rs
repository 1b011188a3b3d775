//! **Internal to botmesh and exempt from semantic versioning**: any release may change anything
//! here, so the stores depend on one exact version. Use `botmesh-sqlite-store` and its siblings.
//!
//! This crate says once what the SQL stores have in common: the schema and its migrations, the
//! statements, and what their results mean. A backend implements [`Driver`] over its connections
//! and names its [`Dialect`]; [`SqlStore`] is then a whole store.
//!
//! What every statement keeps to:
//! - A conditional write is one statement, whose returned row says that it was applied.
//! - The backend's clock decides; callers give durations. Moments are microseconds since 1970.
//! - Revisions and lock fences are `greatest(now, last + 1)`. A row that has ended is kept for
//!   `FENCE_MEMORY`; before it is removed, its number goes into the `floor` that new rows start
//!   above, so that no number comes again even if the clock was set back.

mod checkpoint;
mod dialect;
mod document;
mod driver;
mod error;
#[cfg(feature = "lender")]
mod finish;
mod forward;
#[cfg(feature = "durability")]
mod inbox;
#[cfg(feature = "lender")]
mod lender;
mod lock;
#[cfg(feature = "lender")]
mod openings;
mod prefix;
mod schema;
mod statement;
mod store;
mod sweep;
mod value;
mod write;

pub use dialect::Dialect;
pub use driver::{Driver, Transaction};
pub use error::{DriverError, Fault};
#[cfg(feature = "lender")]
pub use finish::Finish;
#[cfg(feature = "durability")]
pub use inbox::{Joined, Steps};
#[cfg(feature = "lender")]
pub use lender::{Bounds, Lender, Lent, NotLent, Opener};
pub use prefix::{PrefixError, TablePrefix};
pub use schema::{Part, migrate};
pub use statement::{Answer, Statement};
pub use store::SqlStore;
pub use value::{Row, Value};

#[doc(hidden)]
pub use async_trait::async_trait;
#[doc(hidden)]
pub use botmesh_core as core;
