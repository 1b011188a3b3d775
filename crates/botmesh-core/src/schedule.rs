//! When work is due that no message asks for (feature `scheduler`).
//!
//! A [`Schedule`] is a pure list of moments. A [`Job`] says what is done about those that were
//! missed or failed. For durable jobs a record in the store says which moment
//! was seen to last: one row for each job, written by compare-and-set under the fence of a
//! [`Lease`], so that each occurrence is run once across replicas and restarts.

mod job;
mod lease;
mod moments;
pub(crate) mod record;

pub use job::{Job, Misfire, Retry, durable, plain};
pub use lease::{CoordinatorLeases, Lease, Leases, StoreLeases};
pub use moments::{Schedule, ScheduleError, Zone, tz};
