//! Expressions of update pipelines, in which the server decides with its own clock.
//!
//! Times are compared as milliseconds, so that a row without a time compares as one is told to.
//! Numbers of ours follow a hybrid logical clock: the server's time in microseconds, or one more
//! than before.

use std::time::Duration;

use mongodb::bson::{Bson, Document, bson, doc};

/// Longer times are as good as this, a thousand years in milliseconds.
const LONGEST: i64 = 1_000 * 366 * 24 * 3600 * 1_000;

/// What a field is set to in order to remove it.
pub(crate) const REMOVE: &str = "$$REMOVE";

/// The server's time in milliseconds.
pub(crate) fn now() -> Bson {
    bson!({ "$toLong": "$$NOW" })
}

/// A number for a row that is made.
pub(crate) fn fresh() -> Bson {
    bson!({ "$multiply": [now(), 1_000_i64] })
}

/// A number that is higher than the one in this field.
pub(crate) fn grown(field: &str) -> Bson {
    bson!({ "$max": [fresh(), { "$add": [{ "$ifNull": [field, 0_i64] }, 1_i64] }] })
}

/// The moment at which a time ends; removes the field when there is none.
pub(crate) fn end(time: Option<Duration>) -> Bson {
    time.map_or_else(|| bson!(REMOVE), |time| bson!({ "$add": ["$$NOW", millis(time)] }))
}

/// A time in whole milliseconds, rather a bit longer than shorter.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(LONGEST).min(LONGEST)
}

/// Whether the row has not ended.
pub(crate) fn lasts() -> Bson {
    let end = bson!({ "$toLong": { "$ifNull": ["$ends_at", "$expires_at"] } });
    bson!({ "$gt": [{ "$ifNull": [end, i64::MAX] }, now()] })
}

/// A list in the row, empty where there is none.
pub(crate) fn list(field: &str) -> Bson {
    bson!({ "$ifNull": [field, []] })
}

/// The last step of every change of a checkpoint. The server deletes a row some time after its
/// `ends_at`; while the inbox of the chat has records, the end stands in `expires_at` instead.
pub(crate) fn settled() -> Document {
    let end = bson!({ "$ifNull": ["$ends_at", "$expires_at", REMOVE] });
    let records = bson!({ "$add": [{ "$size": list("$records") }, { "$size": list("$done") }] });
    let has_records = bson!({ "$gt": [records, 0] });
    doc! { "$set": {
        "ends_at": { "$cond": [has_records.clone(), REMOVE, end.clone()] },
        "expires_at": { "$cond": [has_records, end, REMOVE] },
    } }
}

/// Whether there is a text in a row that has not ended.
pub(crate) fn live() -> Bson {
    bson!({ "$and": [{ "$eq": [{ "$type": "$body" }, "string"] }, lasts()] })
}

/// A text as it is, also when it begins like an expression.
pub(crate) fn literal(text: &str) -> Bson {
    bson!({ "$literal": text })
}

/// A pipeline that sets these fields if the condition holds, and otherwise changes nothing. Unlike
/// a condition in the filter, this one may stand beside an upsert.
pub(crate) fn set_if(condition: Bson, fields: Document) -> Vec<Document> {
    let mut set = Document::new();
    for (field, value) in fields {
        let present = bson!({ "$ifNull": [format!("${field}"), REMOVE] });
        set.insert(field, bson!({ "$cond": ["$fits", value, present] }));
    }
    vec![doc! { "$set": { "fits": condition } }, doc! { "$set": set }, doc! { "$unset": "fits" }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_bounded() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::from_nanos(1)), 1);
        assert_eq!(millis(Duration::from_millis(7)), 7);
        assert_eq!(millis(Duration::MAX), LONGEST);
    }
}
