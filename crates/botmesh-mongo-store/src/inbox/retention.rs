//! What is forgotten.

use std::time::Duration;

use botmesh_core::store::{Retention, StoreError};
use mongodb::bson::{Bson, Document, bson, doc};

use super::ROWS;
use super::part::{CLAIMED, DEAD, filter, has_passed, indexed, is_state};
use crate::expression::{list, millis, now};
use crate::store::MongoStore;
use crate::{row, schema};

/// How many records one step forgets: what it names is sent along.
const AT_ONCE: usize = 500;

impl MongoStore {
    pub(super) async fn forget_records(
        &self,
        retention: Retention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for (index, field, is_over) in [
            ("done_at", "done", is_past("$$each.ended_at", retention.done)),
            (
                "claim_at",
                "records",
                bson!({ "$and": [is_state(CLAIMED), has_passed("$$each.lease_at")] }),
            ),
            (
                "dead_at",
                "records",
                bson!({ "$and": [is_state(DEAD), is_past("$$each.dead_at", retention.dead)] }),
            ),
        ] {
            loop {
                let wanted = AT_ONCE.min(limit - forgotten);
                let now = self.forget_some(index, field, &is_over, wanted).await?;
                forgotten += now;
                if now < AT_ONCE {
                    break;
                }
            }
        }
        Ok(forgotten)
    }

    /// Forgets some of what is over in one of the lists.
    async fn forget_some(
        &self,
        index: &str,
        field: &str,
        is_over: &Bson,
        limit: usize,
    ) -> Result<usize, StoreError> {
        if limit == 0 {
            return Ok(0);
        }
        let list = list(&format!("${field}"));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let pipeline = vec![
            doc! { "$match": { index: { "$type": "date" } } },
            doc! { "$sort": { index: 1 } },
            doc! { "$project": { "found": filter(list.clone(), is_over.clone()) } },
            doc! { "$unwind": "$found" },
            doc! { "$limit": limit },
            doc! { "$project": { "id": "$found.id" } },
        ];
        let found = self.aggregate("find records to forget", ROWS, pipeline).await?;
        if found.is_empty() {
            return Ok(0);
        }
        let (mut chats, mut named) = (Vec::new(), Vec::new());
        for mut row in found {
            let chat = row::take_text(&mut row, "a record", "_id")?.unwrap_or_default();
            let id = row::take_text(&mut row, "a record", "id")?.unwrap_or_default();
            named.push(format!("{chat}\0{id}"));
            if chats.last() != Some(&chat) {
                chats.push(chat);
            }
        }
        let count = named.len();
        let name = bson!({ "$concat": ["$_id", "\0", "$$each.id"] });
        let goes = bson!({ "$and": [is_over, { "$in": [name, { "$literal": named }] }] });
        let kept: Document = doc! { field: filter(list, bson!({ "$not": [goes] })) };
        let mut pipeline = vec![doc! { "$set": kept }];
        pipeline.extend(indexed());
        let filter = doc! { "_id": { "$in": chats } };
        self.update_all("forget records", schema::CHECKPOINTS, filter, pipeline).await?;
        Ok(count)
    }
}

/// Whether a moment is this long ago.
fn is_past(field: &str, kept: Duration) -> Bson {
    bson!({ "$lte": [{ "$add": [{ "$toLong": field }, millis(kept)] }, now()] })
}
