//! The usual cases in one operation each: a free key is taken, a busy one is waited for, one that
//! was held is handed on or given back. They decide as the transition function does; all else is
//! left to that.

use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Limits, Outcome, TicketId};
use mongodb::bson::{Bson, Document, bson, doc};
use mongodb::options::ReturnDocument;

use super::clock::Clock;
use super::known::View;
use super::rows::{Rows, explain};
use super::wire::{self, long};
use crate::expression::REMOVE;

/// So many tickets that were given up in doubt are remembered with a key.
const GIVEN_UP: i32 = 32;

/// A number that no write of this row has had.
fn revision(clock: Clock) -> Bson {
    bson!({ "$max": [clock.now(), { "$add": [{ "$ifNull": ["$revision", 0_i64] }, 1_i64] }] })
}

/// The row of a key that this ticket holds.
fn held(key: &CoordinationKey, ticket: &TicketId, clock: Clock) -> Document {
    doc! {
        "_id": key.as_str(),
        "holder.incarnation": ticket.incarnation.as_str(),
        "holder.sequence": long(ticket.sequence),
        "$expr": { "$gt": ["$expires_at", clock.now()] },
    }
}

/// The fence of the next grant.
fn next_fence(view: &View, clock: Clock) -> Bson {
    bson!({ "$max": [
        clock.now(),
        { "$add": [{ "$ifNull": ["$fence", 0_i64] }, 1_i64] },
        long(view.floor).saturating_add(1),
    ] })
}

/// Whether what this field names is one of the sessions that live.
fn lives(field: &str, view: &View, clock: Clock) -> Bson {
    let one_of_them = view.living.iter().map(|one| {
        bson!({
            field: one.incarnation.as_str(),
            "$expr": { "$and": [
                { "$gte": [clock.now(), long(one.since.as_micros())] },
                { "$lt": [clock.now(), long(one.until.as_micros())] },
            ] },
        })
    });
    Bson::Array(one_of_them.collect())
}

impl Rows {
    async fn change(
        &self,
        filter: Document,
        set: Document,
        wanted: Document,
    ) -> Result<Option<Document>, BackendError> {
        let rows = self.turns().await?;
        let changing = rows
            .find_one_and_update(filter, vec![doc! { "$set": set }])
            .projection(wanted)
            .return_document(ReturnDocument::After);
        self.run(changing.into_future()).await.map_err(explain)
    }

    /// Takes a key that is free, or the next place behind somebody who lives.
    ///
    /// A key without a row is left to the transition function: it may have been wiped, with all
    /// others and the sessions, which only a look at those tells.
    pub(super) async fn reserve(
        &self,
        key: &CoordinationKey,
        ticket: &TicketId,
        queues: bool,
        limits: &Limits,
    ) -> Result<Option<Outcome>, BackendError> {
        let clock = self.clock();
        let Some(view) = self.known.view(&self.server()) else { return Ok(None) };
        let Some(until) = view.until(ticket) else { return Ok(None) };
        let own = wire::ticket(ticket);
        let is_free = bson!({ "holder": null, "queue.0": { "$exists": false } });
        let place = i64::from(limits.max_queue) - 1;
        let is_busy = bson!({
            "$nor": [{ "holder.sequence": long(ticket.sequence), "holder.incarnation": ticket.incarnation.as_str() }],
            "queue": { "$ne": own.clone() },
            format!("queue.{place}"): { "$exists": false },
            "$expr": { "$gt": ["$expires_at", clock.now()] },
            "$or": lives("holder.incarnation", &view, clock),
        });
        let mut cases = vec![is_free];
        cases.extend(Some(is_busy).filter(|_| queues && place >= 0));
        let filter = doc! {
            "_id": key.as_str(),
            "given_up": { "$ne": own.clone() },
            "$or": cases,
            "$expr": { "$and": [
                { "$lt": [clock.now(), long(until.as_micros())] },
                { "$gte": [clock.now(), long(view.from.as_micros())] },
            ] },
        };
        let free = |then: Bson, otherwise: Bson| {
            let is_free = bson!({ "$eq": [{ "$type": "$holder" }, "missing"] });
            bson!({ "$cond": [is_free, then, otherwise] })
        };
        let is_forgotten = bson!({ "$lte": ["$expires_at", clock.now()] });
        let previous = || bson!({ "$ifNull": ["$previous", REMOVE] });
        let set = doc! {
            "holder": free(bson!({ "$literal": own.clone() }), bson!("$holder")),
            "fence": free(next_fence(&view, clock), bson!("$fence")),
            "previous": free(bson!({ "$cond": [is_forgotten, REMOVE, previous()] }), previous()),
            "queue": free(bson!([]), bson!({ "$concatArrays": ["$queue", [{ "$literal": own }]] })),
            "expires_at": clock.after(limits.held),
            "ends_at": clock.date_after(limits.held),
            "asked_at": clock.now(),
            "revision": revision(clock),
        };
        let wanted = doc! { "holder": 1, "fence": 1, "previous": 1, "queue": 1, "asked_at": 1 };
        let row = self.change(filter, set, wanted).await?;
        // Decided, but nobody can read how: as good as no answer.
        let outcome = row.map(|row| wire::read_reserved(&row, ticket, &view)).transpose();
        outcome.map_err(BackendError::Unknown)
    }

    /// Gives back a key for which nobody waits, or hands it on to the next, who lives.
    pub(super) async fn release(
        &self,
        key: &CoordinationKey,
        ticket: &TicketId,
        limits: &Limits,
    ) -> Result<Option<Outcome>, BackendError> {
        let clock = self.clock();
        let mut filter = held(key, ticket, clock);
        let mut cases = vec![bson!({ "queue.0": { "$exists": false } })];
        let view = self.known.view(&self.server());
        if let Some(view) = view.as_ref().filter(|view| !view.living.is_empty()) {
            cases.push(bson!({
                "$or": lives("queue.0.incarnation", view, clock),
                "$expr": { "$gte": [clock.now(), long(view.from.as_micros())] },
            }));
        }
        filter.insert("$or", cases);
        let view = view.unwrap_or_default();
        let waits = |then: Bson, otherwise: Bson| bson!({ "$cond": [{ "$gt": [{ "$size": "$queue" }, 0] }, then, otherwise] });
        let set = doc! {
            "holder": waits(bson!({ "$arrayElemAt": ["$queue", 0] }), bson!(REMOVE)),
            "queue": waits(bson!({ "$slice": ["$queue", 1, { "$size": "$queue" }] }), bson!([])),
            "previous": {
                "incarnation": { "$literal": ticket.incarnation.as_str() },
                "fence": "$fence",
            },
            "fence": waits(next_fence(&view, clock), bson!("$fence")),
            "expires_at": waits(clock.after(limits.held), clock.after(limits.idle)),
            "ends_at": waits(clock.date_after(limits.held), clock.date_after(limits.idle)),
            "revision": revision(clock),
        };
        let wanted = doc! { "holder": 1, "fence": 1, "previous": 1 };
        let row = self.change(filter, set, wanted).await?;
        let outcome = row.map(|row| wire::read_released(&row, key, ticket)).transpose();
        outcome.map_err(BackendError::Unknown)
    }

    /// Keeps the row of a key that is held for long.
    pub(super) async fn keep(
        &self,
        key: &CoordinationKey,
        ticket: &TicketId,
        limits: &Limits,
    ) -> Result<bool, BackendError> {
        let clock = self.clock();
        let set = doc! {
            "expires_at": clock.after(limits.held),
            "ends_at": clock.date_after(limits.held),
            "revision": revision(clock),
        };
        Ok(self.change(held(key, ticket, clock), set, doc! { "_id": 1 }).await?.is_some())
    }

    /// Notes that a ticket is given up whose reservation may yet arrive: whatever is under way finds
    /// another revision, or the note.
    pub(super) async fn refuse(
        &self,
        key: &CoordinationKey,
        ticket: &TicketId,
        limits: &Limits,
    ) -> Result<(), BackendError> {
        let clock = self.clock();
        let noted = bson!({ "$concatArrays": [
            { "$ifNull": ["$given_up", []] },
            [{ "$literal": wire::ticket(ticket) }],
        ] });
        let later = |field: &str, time: Bson| bson!({ "$max": [field, time] });
        let set = doc! {
            "given_up": { "$slice": [noted, -GIVEN_UP] },
            "fence": { "$ifNull": ["$fence", 0_i64] },
            "queue": { "$ifNull": ["$queue", []] },
            "expires_at": later("$expires_at", clock.after(limits.idle)),
            "ends_at": later("$ends_at", clock.date_after(limits.idle)),
            "revision": revision(clock),
        };
        let rows = self.turns().await?;
        let noting = rows
            .update_one(doc! { "_id": key.as_str() }, vec![doc! { "$set": set }])
            .upsert(true)
            .into_future();
        self.run(noting).await.map(drop).map_err(explain)
    }
}
