//! How records end, together with what they did to the checkpoint.

use botmesh_core::id::Revision;
use botmesh_core::store::{CheckpointChange, Commit, Committed, StoreError};
use mongodb::bson::{Document, bson, doc};

use super::part::{CLAIMED, PENDING, filter, indexed, is_at, open};
use super::{ROWS, WHAT, stored};
use crate::checkpoint::{absent, cleared, number, unfenced, written};
use crate::expression::{REMOVE, list};
use crate::row;
use crate::store::{MongoStore, Repeat, check_size};

impl MongoStore {
    pub(super) async fn commit_record(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        const OPERATION: &str = "end record";
        let Commit { chat, position, fence, checkpoint } = commit;
        let (chat, position, fence) = (chat.as_str(), stored(position), number(fence)?);
        let request = self.request();
        let mut fits = open(chat, position, &[PENDING, CLAIMED], fence);
        let mut pipeline = Vec::new();
        let mut change = |mut fields: Document| {
            fields.insert("fence", fence);
            pipeline.push(doc! { "$set": fields });
        };
        match checkpoint {
            CheckpointChange::Nothing => {}
            CheckpointChange::Set { write, expected } => {
                check_size(chat, write.body)?;
                match expected {
                    Some(expected) => fits.extend(unfenced(chat, expected, fence)),
                    None => {
                        fits.insert("$expr", absent(fence));
                    }
                }
                change(written(write, &request));
            }
            CheckpointChange::Clear { expected } => {
                fits.extend(unfenced(chat, expected, fence));
                change(cleared(&request));
            }
        }
        let ended = bson!({ "$arrayElemAt": [filter(list("$records"), is_at(position)), 0] });
        let id = bson!({ "$let": { "vars": { "ended": ended }, "in": "$$ended.id" } });
        let others = filter(list("$records"), bson!({ "$not": [is_at(position)] }));
        pipeline.push(doc! { "$set": {
            "done": { "$concatArrays": [list("$done"), [{ "id": id, "ended_at": "$$NOW" }]] },
            "records": others,
            "committed": {
                "request": &request,
                "revision": { "$ifNull": ["$revision", REMOVE] },
            },
        } });
        pipeline.extend(indexed());
        let wanted = doc! { "committed": 1 };
        let update =
            self.update(OPERATION, Repeat::Freely, ROWS, fits, pipeline, wanted.clone()).await?;
        let row = match update.row {
            None if update.is_doubtful => {
                let filter = doc! { "_id": chat, "committed.request": &request };
                self.find(OPERATION, ROWS, filter, wanted).await?
            }
            row => row,
        };
        let Some(row) = row else { return Ok(Committed::Refused) };
        if !matches!(checkpoint, CheckpointChange::Set { .. }) {
            return Ok(Committed::Applied(None));
        }
        let revision = match row.get_document("committed") {
            Ok(committed) => row::number(committed, WHAT, "revision")?,
            Err(_) => row::number(&row, WHAT, "revision")?,
        };
        Ok(Committed::Applied(Some(Revision::new(revision))))
    }
}
