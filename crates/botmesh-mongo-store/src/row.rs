//! Reads what the server answers.

use std::time::Duration;

use botmesh_core::id::{Fence, Revision};
use botmesh_core::store::StoreError;
use mongodb::bson::{Bson, Document};

use crate::failure::corrupt;

/// A field that is a number of ours.
pub(crate) fn number(row: &Document, what: &'static str, field: &str) -> Result<u64, StoreError> {
    let found = match row.get(field) {
        Some(Bson::Int64(number)) => u64::try_from(*number).ok(),
        Some(Bson::Int32(number)) => u64::try_from(*number).ok(),
        _ => None,
    };
    found.ok_or_else(|| corrupt(what, format!("`{field}` is no number of ours")))
}

/// A field that is a number of ours, or absent.
pub(crate) fn optional_number(
    row: &Document,
    what: &'static str,
    field: &str,
) -> Result<Option<u64>, StoreError> {
    match row.get(field) {
        None | Some(Bson::Null) => Ok(None),
        Some(_) => number(row, what, field).map(Some),
    }
}

/// The revision of a row.
pub(crate) fn revision(row: &Document, what: &'static str) -> Result<Revision, StoreError> {
    number(row, what, "revision").map(Revision::new)
}

/// The fence of a row.
pub(crate) fn fence(row: &Document, what: &'static str) -> Result<Fence, StoreError> {
    number(row, what, "fence").map(Fence::new)
}

/// Takes a text out of a row; none where there is none.
pub(crate) fn take_text(
    row: &mut Document,
    what: &'static str,
    field: &str,
) -> Result<Option<String>, StoreError> {
    match row.remove(field) {
        None | Some(Bson::Null) => Ok(None),
        Some(Bson::String(text)) => Ok(Some(text)),
        Some(_) => Err(corrupt(what, format!("`{field}` is no text"))),
    }
}

/// A moment of the server's clock in milliseconds; none where there is none.
pub(crate) fn moment(
    row: &Document,
    what: &'static str,
    field: &str,
) -> Result<Option<i64>, StoreError> {
    match row.get(field) {
        None | Some(Bson::Null) => Ok(None),
        Some(Bson::DateTime(time)) => Ok(Some(time.timestamp_millis())),
        Some(_) => Err(corrupt(what, format!("`{field}` is no time"))),
    }
}

/// The time from one moment to another, zero when that has passed.
pub(crate) fn left(until: i64, now: i64) -> Duration {
    Duration::from_millis(u64::try_from(until.saturating_sub(now)).unwrap_or(0))
}
