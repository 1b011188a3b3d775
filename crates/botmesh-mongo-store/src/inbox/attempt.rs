//! What becomes of a record until it ends.

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Position};
use botmesh_core::store::{Begun, InboxRecord, Postponement, StoreError};
use mongodb::bson::{Document, bson, doc};

use super::part::{
    CLAIMED, DEAD, PENDING, changed, filter, has_passed, indexed, is_at, is_state, open,
};
use super::{ROWS, WHAT, attempts, position, stored, take_record};
use crate::checkpoint::number;
use crate::expression::{end, list, literal};
use crate::row;
use crate::store::{MongoStore, Repeat};

/// How often a record is begun anew that was found to fit when it was asked why it did not.
const ROUNDS: usize = 8;

impl MongoStore {
    pub(super) async fn begin_record(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        const OPERATION: &str = "begin record";
        let own = number(fence)?;
        let request = self.request();
        for _ in 0..ROUNDS {
            let first = bson!({ "$arrayElemAt": [filter(list("$records"), is_state(PENDING)), 0] });
            let due = bson!({ "$or": [
                { "$eq": [{ "$ifNull": ["$$first.due_at", null] }, null] },
                has_passed("$$first.due_at"),
            ] });
            let fits = bson!({ "$and": [
                { "$lte": ["$$first.fence", own] },
                { "$ne": ["$$first.request", &request] },
                due,
            ] });
            let at = bson!({ "$let": { "vars": { "first": first }, "in": {
                "$cond": [fits, "$$first.position", -1_i64],
            } } });
            let begun = doc! {
                "fence": own,
                "attempts": { "$add": ["$$each.attempts", 1_i64] },
                "lease_at": end(Some(lease)),
                "request": &request,
            };
            let is_first = bson!({ "$eq": ["$$each.position", "$at"] });
            let mut pipeline = vec![
                doc! { "$set": { "at": at } },
                doc! { "$set": { "records": changed(is_first, begun) } },
                doc! { "$unset": ["at"] },
            ];
            pipeline.extend(indexed());
            let filter = doc! { "_id": chat.as_str(), "waiting": { "$gt": 0 } };
            let wanted =
                doc! { "waiting": 1, "records": { "$elemMatch": { "request": &request } } };
            let update =
                self.update(OPERATION, Repeat::Freely, ROWS, filter, pipeline, wanted).await?;
            let Some(mut row) = update.row else { return Ok(Begun::Nothing) };
            if let Some(mut record) = take_record(&mut row)? {
                let has_more = row::number(&row, WHAT, "waiting")? > 1;
                return Ok(Begun::Record(InboxRecord {
                    position: position(&record)?,
                    body: row::take_text(&mut record, WHAT, "body")?.unwrap_or_default(),
                    attempts: attempts(&record)?,
                    sends: row::take_text(&mut record, WHAT, "sends")?,
                    error: row::take_text(&mut record, WHAT, "error")?,
                    has_more,
                }));
            }
            if let Some(why) = self.why_not(chat, fence).await? {
                return Ok(why);
            }
        }
        Ok(Begun::NotYet(Duration::ZERO))
    }

    /// Why the first pending record cannot be begun; none when it can by now.
    async fn why_not(&self, chat: &ChatKey, fence: Fence) -> Result<Option<Begun>, StoreError> {
        let first = bson!({ "$arrayElemAt": [filter(list("$records"), is_state(PENDING)), 0] });
        let pipeline = vec![
            doc! { "$match": { "_id": chat.as_str() } },
            doc! { "$project": { "now": "$$NOW", "first": { "$let": {
                "vars": { "first": first },
                "in": { "fence": "$$first.fence", "due_at": "$$first.due_at" },
            } } } },
        ];
        let mut found = self.aggregate("look at record", ROWS, pipeline).await?;
        let Some(row) = found.pop() else { return Ok(Some(Begun::Nothing)) };
        let now = row::moment(&row, WHAT, "now")?.unwrap_or(i64::MIN);
        let Ok(first) = row.get_document("first") else { return Ok(Some(Begun::Nothing)) };
        let Some(begun) = row::optional_number(first, WHAT, "fence")? else {
            return Ok(Some(Begun::Nothing));
        };
        if begun > fence.get() {
            return Ok(Some(Begun::Refused(Fence::new(begun))));
        }
        let due = row::moment(first, WHAT, "due_at")?.filter(|due| *due > now);
        Ok(due.map(|due| Begun::NotYet(row::left(due, now))))
    }

    pub(super) async fn note(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        let fields = doc! { "sends": literal(sends) };
        self.change_open("note sends", chat, position, fence, fields).await
    }

    pub(super) async fn put_off(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        let due = end(Some(postponement.retry_in));
        let mut fields = doc! {
            "attempts": i64::from(postponement.attempts),
            "error": literal(postponement.error),
            "due_at": due.clone(),
            "lease_at": due,
        };
        if let Some(sends) = postponement.sends {
            fields.insert("sends", literal(sends));
        }
        self.change_open("postpone record", chat, position, fence, fields).await
    }

    pub(super) async fn give_up(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        let fields = doc! { "state": DEAD, "dead_at": "$$NOW", "error": literal(error) };
        self.change_open("bury record", chat, position, fence, fields).await
    }

    pub(super) async fn make_pending(
        &self,
        chat: &ChatKey,
        position: Position,
    ) -> Result<bool, StoreError> {
        let (chat, position) = (chat.as_str(), stored(position));
        let filter = open(chat, position, &[DEAD], i64::MAX);
        let fields = doc! {
            "state": PENDING,
            "attempts": 0_i64,
            "due_at": null,
            "dead_at": null,
            "lease_at": "$$NOW",
        };
        self.change("revive record", filter, chat, position, fields).await
    }

    pub(super) async fn end_lease(
        &self,
        chat: &ChatKey,
        position: Position,
    ) -> Result<(), StoreError> {
        let (chat, position) = (chat.as_str(), stored(position));
        let given_back = changed(
            bson!({ "$and": [is_at(position), is_state(PENDING)] }),
            doc! {
                "lease_at": "$$NOW",
            },
        );
        let is_claim = bson!({ "$and": [is_at(position), is_state(CLAIMED)] });
        let records = filter(given_back, bson!({ "$not": [is_claim] }));
        let mut pipeline = vec![doc! { "$set": { "records": records } }];
        pipeline.extend(indexed());
        let filter = open(chat, position, &[PENDING, CLAIMED], i64::MAX);
        let wanted = doc! { "_id": 1 };
        let operation = "release record";
        self.update(operation, Repeat::Freely, ROWS, filter, pipeline, wanted).await.map(drop)
    }

    async fn change_open(
        &self,
        operation: &'static str,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        fields: Document,
    ) -> Result<bool, StoreError> {
        let (chat, position) = (chat.as_str(), stored(position));
        let filter = open(chat, position, &[PENDING], number(fence)?);
        self.change(operation, filter, chat, position, fields).await
    }

    /// Changes the record at this position, if its row fits; whether it did.
    async fn change(
        &self,
        operation: &'static str,
        filter: Document,
        chat: &str,
        position: i64,
        mut fields: Document,
    ) -> Result<bool, StoreError> {
        let request = self.request();
        fields.insert("request", &request);
        let mut pipeline = vec![doc! { "$set": { "records": changed(is_at(position), fields) } }];
        pipeline.extend(indexed());
        let wanted = doc! { "_id": 1 };
        let update =
            self.update(operation, Repeat::Freely, ROWS, filter, pipeline, wanted.clone()).await?;
        if update.row.is_none() && update.is_doubtful {
            let record = doc! { "position": position, "request": &request };
            let filter = doc! { "_id": chat, "records": { "$elemMatch": record } };
            return Ok(self.find(operation, ROWS, filter, wanted).await?.is_some());
        }
        Ok(update.row.is_some())
    }
}
