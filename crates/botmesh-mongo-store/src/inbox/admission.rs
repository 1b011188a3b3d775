//! How records come in.

use botmesh_core::store::{Admission, NewRecord, StoreError};
use mongodb::bson::{Bson, bson, doc};

use super::part::{CLAIMED, PENDING, filter, has_passed, indexed, is_state};
use super::{ROWS, WHAT, position, take_record};
use crate::expression::{REMOVE, end, grown, list, literal};
use crate::failure::NAME;
use crate::row;
use crate::store::{MongoStore, Repeat};

/// How large a row may become by what is admitted. The rest is for its checkpoint, and for what is
/// noted of records until they end.
const MOST_BYTES: usize = 15 * 1024 * 1024;

impl MongoStore {
    pub(super) async fn admit_record(
        &self,
        record: NewRecord<'_>,
    ) -> Result<Admission, StoreError> {
        let chat = record.chat.as_str();
        let body = record.body.unwrap_or_default();
        let request = self.request();
        // Without an id it is known by its request, in case the answer gets lost.
        let identity = match record.message {
            Some(message) => format!("m{}", message.as_str()),
            None => format!("q{request}"),
        };
        let bytes = chat.len() + identity.len() + body.len();
        if bytes > MOST_BYTES {
            let reason = format!("it has {bytes} bytes, an inbox holds {MOST_BYTES} of them");
            return Err(StoreError::Unfit { store: NAME, what: "message", reason });
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let room = bson!({ "$lte": [
            { "$add": [{ "$bsonSize": "$$ROOT" }, bytes] },
            i64::try_from(MOST_BYTES).unwrap_or(i64::MAX),
        ] });
        let most = i64::try_from(record.most).unwrap_or(i64::MAX);
        let is_same = bson!({ "$eq": ["$$each.id", literal(&identity)] });
        // A claim that is over keeps nobody from its message.
        let is_over = bson!({ "$and": [is_state(CLAIMED), has_passed("$$each.lease_at")] });
        let known = bson!({ "$add": [
            { "$size": filter(
                list("$records"),
                bson!({ "$and": [is_same.clone(), { "$not": [is_over] }] }),
            ) },
            { "$size": filter(list("$done"), is_same.clone()) },
        ] });
        let waiting = bson!({ "$size": filter(list("$records"), is_state(PENDING)) });
        let state = if record.body.is_some() { PENDING } else { CLAIMED };
        let new = doc! {
            "position": grown("$last"),
            "id": literal(&identity),
            "state": state,
            "request": &request,
            "before": "$waiting",
            "body": record.body.map_or(Bson::Null, literal),
            "fence": 0_i64,
            "attempts": 0_i64,
            "lease_at": end(Some(record.lease)),
        };
        let others = filter(list("$records"), bson!({ "$not": [is_same] }));
        let with_new = bson!({ "$concatArrays": [others, [new]] });
        let told = doc! {
            "request": &request,
            "known": { "$gt": ["$known", 0] },
            "waiting": "$waiting",
        };
        let provider = literal(record.chat.provider());
        let mut pipeline = vec![
            doc! { "$set": { "known": known, "waiting": waiting } },
            doc! { "$set": { "fits": { "$and": [
                { "$eq": ["$known", 0] },
                { "$lt": ["$waiting", most] },
                room,
            ] } } },
            doc! { "$set": {
                "records": { "$cond": ["$fits", with_new, list("$records")] },
                "last": { "$cond": ["$fits", grown("$last"), { "$ifNull": ["$last", REMOVE] }] },
                "provider": provider,
                "told": { "$cond": ["$fits", { "$ifNull": ["$told", REMOVE] }, told] },
            } },
            doc! { "$unset": ["known", "fits"] },
        ];
        pipeline.extend(indexed());
        // An attempt that was applied already finds its message known, and its own record.
        let wanted = doc! {
            "records": { "$elemMatch": { "request": &request } },
            "told": 1,
        };
        let operation = "admit message";
        let mut row = self.upsert(operation, Repeat::Freely, ROWS, chat, pipeline, wanted).await?;
        if let Some(record) = take_record(&mut row)? {
            let is_behind = row::number(&record, WHAT, "before")? > 0;
            return Ok(Admission::New { position: position(&record)?, is_behind });
        }
        let Some(Bson::Document(told)) = row.get("told") else { return Ok(Admission::Known) };
        if told.get_bool("known").unwrap_or(true) || told.get_str("request").ok() != Some(&request)
        {
            return Ok(Admission::Known);
        }
        let waiting = row::number(told, WHAT, "waiting")?;
        Ok(Admission::Full { waiting: usize::try_from(waiting).unwrap_or(usize::MAX) })
    }
}
