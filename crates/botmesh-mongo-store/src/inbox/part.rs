//! The parts of the update pipelines of the inbox.

use mongodb::bson::{Bson, Document, bson, doc};

use crate::expression::{REMOVE, list, now, settled};

pub(super) const PENDING: &str = "pending";
pub(super) const CLAIMED: &str = "claimed";
pub(super) const DEAD: &str = "dead";

/// Those of a list that fit; the condition knows each as `$$each`.
pub(super) fn filter(input: impl Into<Bson>, condition: impl Into<Bson>) -> Bson {
    bson!({ "$filter": { "input": input.into(), "as": "each", "cond": condition.into() } })
}

/// A list of what is made of each, which is `$$each`.
pub(super) fn map(input: impl Into<Bson>, made: impl Into<Bson>) -> Bson {
    bson!({ "$map": { "input": input.into(), "as": "each", "in": made.into() } })
}

pub(super) fn is_state(state: &str) -> Bson {
    bson!({ "$eq": ["$$each.state", state] })
}

/// Whether it is the record at this position.
pub(super) fn is_at(position: i64) -> Bson {
    bson!({ "$eq": ["$$each.position", position] })
}

/// Whether a moment has passed.
pub(super) fn has_passed(field: &str) -> Bson {
    bson!({ "$lte": [{ "$toLong": field }, now()] })
}

/// The records, of which those that fit are changed.
pub(super) fn changed(condition: impl Into<Bson>, fields: Document) -> Bson {
    let merged = bson!({ "$mergeObjects": ["$$each", fields] });
    map(list("$records"), bson!({ "$cond": [condition.into(), merged, "$$each"] }))
}

/// The last step of each change of an inbox: what is looked for across chats.
pub(super) fn indexed() -> Vec<Document> {
    let count = |state| bson!({ "$size": filter(list("$records"), is_state(state)) });
    // Compared as numbers, as all times are.
    let first = |input: Bson, field: &str| {
        let earliest = bson!({ "$min": map(input, bson!({ "$toLong": field })) });
        bson!({ "$ifNull": [{ "$toDate": earliest }, REMOVE] })
    };
    let of = |state| filter(list("$records"), is_state(state));
    let kept =
        |field: &str| bson!({ "$cond": [{ "$gt": [{ "$size": list(field) }, 0] }, field, REMOVE] });
    let fields = doc! {
        "waiting": count(PENDING),
        "lease_at": first(of(PENDING), "$$each.lease_at"),
        "claim_at": first(of(CLAIMED), "$$each.lease_at"),
        "dead_at": first(of(DEAD), "$$each.dead_at"),
        "done_at": first(list("$done"), "$$each.ended_at"),
        "records": kept("$records"),
        "done": kept("$done"),
    };
    // A row that is nothing but an empty inbox has ended.
    let is_nothing = bson!({ "$and": [
        { "$ne": [{ "$type": "$body" }, "string"] },
        { "$eq": [{ "$ifNull": ["$ends_at", "$expires_at"] }, null] },
        { "$eq": [{ "$size": list("$records") }, 0] },
        { "$eq": [{ "$size": list("$done") }, 0] },
    ] });
    let present = bson!({ "$ifNull": ["$ends_at", REMOVE] });
    let ended = bson!({ "$cond": [is_nothing, "$$NOW", present] });
    vec![doc! { "$set": fields }, doc! { "$set": { "ends_at": ended } }, settled()]
}

/// The row of a chat with a record at this position in one of the states, begun under no higher
/// fence.
pub(super) fn open(chat: &str, position: i64, states: &[&str], fence: i64) -> Document {
    let record = doc! {
        "position": position,
        "state": { "$in": states },
        "fence": { "$lte": fence },
    };
    doc! { "_id": chat, "records": { "$elemMatch": record } }
}
