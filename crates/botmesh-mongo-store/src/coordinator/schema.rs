//! The collections of the coordinator.

use std::time::Duration;

use botmesh_core::store::StoreError;

use crate::MongoStore;
use crate::schema::{Kind, prepare_part};

/// The sessions, in one row that they share.
pub(super) const SPACE: &str = "space";
/// A row for each key.
pub(super) const TURNS: &str = "turns";
/// Who is to be woken.
pub(super) const WAKEUPS: &str = "wakeups";

/// The name of the part, whose version is kept under it.
pub(super) const PART: &str = "coordination";

/// The version of the rows that this code writes.
const VERSION: u64 = 1;

const KINDS: &[Kind] = &[
    Kind { name: SPACE, forget: None },
    // A row that is there tells that nothing was wiped, so those of chats that speak now and then
    // are kept for longer than they count.
    Kind { name: TURNS, forget: Some(Duration::from_secs(24 * 3600)) },
    Kind { name: WAKEUPS, forget: Some(Duration::from_secs(60)) },
];

/// Creates what is missing.
pub(super) async fn prepare(store: &MongoStore) -> Result<(), StoreError> {
    prepare_part(store, PART, VERSION, KINDS).await
}
