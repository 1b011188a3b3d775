//! The rows of the coordinator as documents.

use std::time::Duration;

use botmesh_core::coordination::stored::Revised;
use botmesh_core::coordination::transition::{
    Outcome, Reply, ServerTime, StoredSpace, StoredTurn, TicketId, Wakeup,
};
use botmesh_core::coordination::{CoordinationKey, Grant, PreviousHolder};
use botmesh_core::error::BoxError;
use botmesh_core::id::{Fence, IncarnationId};
use mongodb::bson::{self, Bson, DateTime, Document, bson, doc};
use serde::de::DeserializeOwned;

use super::known::View;

/// A number that is stored as a signed one; no clock and no lease reaches so far.
pub(super) fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A ticket inside a row.
pub(super) fn ticket(ticket: &TicketId) -> Bson {
    bson!({ "incarnation": ticket.incarnation.as_str(), "sequence": long(ticket.sequence) })
}

/// The space with its revision.
pub(super) fn write_space(space: &StoredSpace, revision: u64) -> Result<Document, BoxError> {
    let mut row = bson::serialize_to_document(space)?;
    row.insert("revision", long(revision));
    Ok(row)
}

/// A turn with its revision, as what is set and what is removed. When it is deleted is told in the
/// server's own kind of time.
pub(super) fn write_turn(
    turn: &StoredTurn,
    revision: u64,
) -> Result<(Document, Document), BoxError> {
    let mut set = Document::new();
    let mut unset = Document::new();
    for (field, value) in bson::serialize_to_document(turn)? {
        match value {
            Bson::Null => unset.insert(field, ""),
            value => set.insert(field, value),
        };
    }
    let ends_at = DateTime::from_millis(long(turn.expires_at.as_micros()) / 1_000);
    set.extend(doc! { "revision": long(revision), "ends_at": ends_at });
    Ok((set, unset))
}

/// Reads a row with its revision; an absent one has the revision zero.
pub(super) fn read<T: DeserializeOwned + Default>(
    row: Option<Document>,
) -> Result<Revised<T>, BoxError> {
    let Some(row) = row else { return Ok(Revised::default()) };
    let revision = row.get_i64("revision")?;
    Ok(Revised { revision: revision.unsigned_abs(), state: bson::deserialize_from_document(row)? })
}

/// Reads what became of a reservation that was decided in one operation.
pub(super) fn read_reserved(
    row: &Document,
    ticket: &TicketId,
    view: &View,
) -> Result<Outcome, BoxError> {
    let holder = read_ticket(row.get_document("holder")?)?;
    if holder == *ticket {
        return Ok(Reply::Granted(read_grant(row)?).into());
    }
    let asked = ServerTime::from_micros(row.get_i64("asked_at")?.unsigned_abs());
    let remaining = view.until(&holder).map_or(Duration::ZERO, |until| until.since(asked));
    // It is the last one, and the holder comes before all.
    let ahead = u32::try_from(row.get_array("queue")?.len())?;
    Ok(Reply::Queued { ahead, remaining }.into())
}

/// Reads what became of a release that was decided in one operation.
pub(super) fn read_released(
    row: &Document,
    key: &CoordinationKey,
    ticket: &TicketId,
) -> Result<Outcome, BoxError> {
    let released = |next| Reply::Released { next };
    let Ok(holder) = row.get_document("holder") else { return Ok(released(None).into()) };
    let (next, grant) = (read_ticket(holder)?, read_grant(row)?);
    if next.incarnation == ticket.incarnation {
        return Ok(released(Some((next.sequence, grant))).into());
    }
    let wakeup = Some(Wakeup { ticket: next, key: key.clone(), grant });
    Ok(Outcome { reply: released(None), wakeup })
}

fn read_ticket(row: &Document) -> Result<TicketId, BoxError> {
    Ok(TicketId {
        incarnation: IncarnationId::new(row.get_str("incarnation")?)?,
        sequence: row.get_i64("sequence")?.unsigned_abs(),
    })
}

fn read_grant(row: &Document) -> Result<Grant, BoxError> {
    let previous = match row.get_document("previous") {
        Ok(previous) => Some(read_previous(previous)?),
        Err(_) => None,
    };
    Ok(Grant { fence: Fence::new(row.get_i64("fence")?.unsigned_abs()), previous })
}

fn read_previous(row: &Document) -> Result<PreviousHolder, BoxError> {
    Ok(PreviousHolder {
        incarnation: IncarnationId::new(row.get_str("incarnation")?)?,
        fence: Fence::new(row.get_i64("fence")?.unsigned_abs()),
    })
}

/// What a wake-up says. Its values are literal, for it is written by a pipeline.
pub(super) fn write_wakeup(wakeup: &Wakeup) -> Document {
    let mut row = doc! {
        "to": { "$literal": wakeup.ticket.incarnation.as_str() },
        "sequence": long(wakeup.ticket.sequence),
        "key": { "$literal": wakeup.key.as_str() },
        "fence": long(wakeup.grant.fence.get()),
        "ends_at": "$$NOW",
    };
    if let Some(previous) = &wakeup.grant.previous {
        let previous = doc! {
            "incarnation": previous.incarnation.as_str(),
            "fence": long(previous.fence.get()),
        };
        row.insert("previous", doc! { "$literal": previous });
    }
    row
}

/// Reads a wake-up.
pub(super) fn read_wakeup(row: &Document) -> Result<Wakeup, BoxError> {
    Ok(Wakeup {
        ticket: TicketId {
            incarnation: IncarnationId::new(row.get_str("to")?)?,
            sequence: row.get_i64("sequence")?.unsigned_abs(),
        },
        key: CoordinationKey::decode(row.get_str("key")?)?,
        grant: read_grant(row)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, sequence: u64) -> TicketId {
        TicketId { incarnation: IncarnationId::new(name).unwrap(), sequence }
    }

    #[test]
    fn a_turn_comes_back_as_it_was_written() {
        let previous =
            PreviousHolder { incarnation: of("$b#1", 0).incarnation, fence: Fence::new(7) };
        for turn in [
            StoredTurn::default(),
            StoredTurn {
                holder: Some(of("a|'\n{}#1", 3)),
                fence: 9,
                previous: Some(previous),
                queue: vec![of("$c#1", 1), of("d#1", 2)],
                expires_at: ServerTime::from_micros(1_800_000_000_000_001),
            },
        ] {
            let (set, unset) = write_turn(&turn, 5).unwrap();
            assert!(set.iter().all(|(field, _)| !unset.contains_key(field)));
            assert_eq!(
                read::<StoredTurn>(Some(set)).unwrap(),
                Revised { revision: 5, state: turn }
            );
        }
        assert_eq!(read::<StoredTurn>(None).unwrap(), Revised::default());
    }
}
