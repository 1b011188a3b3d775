use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Revision};
use botmesh_core::store::{
    Adopted, CheckpointStore, CheckpointWrite, ConditionalCheckpointStore, StoreError,
    StoredCheckpoint, Swap,
};
use mongodb::bson::{Bson, Document, bson, doc};

use crate::expression::{REMOVE, end, fresh, grown, literal, live, millis, set_if, settled};
use crate::failure::NAME;
use crate::store::{MongoStore, Repeat, check_size, stored};
use crate::{row, schema};

const WHAT: &str = "a checkpoint";
const ROWS: &str = schema::CHECKPOINTS;

/// A fence as it is stored.
pub(crate) fn number(fence: Fence) -> Result<i64, StoreError> {
    i64::try_from(fence.get()).map_err(|_| StoreError::Unfit {
        store: NAME,
        what: "fence",
        reason: format!("{fence} is larger than {}", i64::MAX),
    })
}

/// What a write sets, but for its fence.
pub(crate) fn written(write: CheckpointWrite<'_>, request: &str) -> Document {
    doc! {
        "revision": grown("$revision"),
        "body": literal(write.body),
        "wake_at": end(write.wake_in),
        "ends_at": end(write.expires_in),
        "expires_at": REMOVE,
        "request": request,
    }
}

/// What clearing sets.
pub(crate) fn cleared(request: &str) -> Document {
    doc! {
        "revision": grown("$revision"),
        "body": REMOVE,
        "wake_at": REMOVE,
        "ends_at": "$$NOW",
        "expires_at": REMOVE,
        "request": request,
    }
}

/// Reads a row with the server's time in `now`; none when nothing is there or it has ended.
fn read(row: &mut Document) -> Result<Option<StoredCheckpoint>, StoreError> {
    let now = row::moment(row, WHAT, "now")?.unwrap_or(i64::MIN);
    let Some(body) = row::take_text(row, WHAT, "body")? else { return Ok(None) };
    for end in ["ends_at", "expires_at"] {
        if row::moment(row, WHAT, end)?.is_some_and(|end| end <= now) {
            return Ok(None);
        }
    }
    let wake_at = row::moment(row, WHAT, "wake_at")?;
    Ok(Some(StoredCheckpoint {
        revision: row::revision(row, WHAT)?,
        fence: row::fence(row, WHAT)?,
        body,
        wake_in: wake_at.map(|wake_at| row::left(wake_at, now)),
    }))
}

#[async_trait]
impl CheckpointStore for MongoStore {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        let pipeline = vec![
            doc! { "$match": { "_id": key.as_str() } },
            doc! { "$project": {
                "revision": 1, "fence": 1, "body": 1, "wake_at": 1, "ends_at": 1, "expires_at": 1,
                "now": "$$NOW",
            } },
        ];
        let mut found = self.aggregate("load checkpoint", ROWS, pipeline).await?;
        found.pop().map_or(Ok(None), |mut row| read(&mut row))
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        check_size(key.as_str(), write.body)?;
        let fence = number(fence)?;
        let mut fields = written(write, &self.request());
        fields.insert("fence", bson!({ "$max": [{ "$ifNull": ["$fence", fence] }, fence] }));
        let pipeline = vec![doc! { "$set": fields }, settled()];
        let (id, wanted) = (key.as_str(), doc! { "revision": 1 });
        let row = self
            .upsert("set checkpoint", Repeat::IfNotExecuted, ROWS, id, pipeline, wanted)
            .await?;
        row::revision(&row, WHAT)
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        let filter = doc! { "_id": key.as_str(), "$expr": live() };
        let pipeline = vec![doc! { "$set": cleared(&self.request()) }, settled()];
        let wanted = doc! { "_id": 1 };
        self.update("clear checkpoint", Repeat::IfNotExecuted, ROWS, filter, pipeline, wanted)
            .await
            .map(drop)
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        // A limit of zero means none to the server.
        let Some(limit) = i64::try_from(limit).ok().filter(|limit| *limit > 0) else {
            return Ok(Vec::new());
        };
        // The index gives the earliest; those beyond the horizon are left out here, because a
        // bound that the server's clock decides need not be a bound of the index.
        let pipeline = vec![
            doc! { "$match": { "wake_at": { "$type": "date" } } },
            doc! { "$sort": { "wake_at": 1, "_id": 1 } },
            doc! { "$match": { "$expr": live() } },
            doc! { "$limit": limit },
            doc! { "$project": { "wake_at": 1, "now": "$$NOW" } },
        ];
        let horizon = Duration::from_millis(millis(horizon).unsigned_abs());
        let mut due = Vec::new();
        for mut row in self.aggregate("find checkpoints to wake", ROWS, pipeline).await? {
            let now = row::moment(&row, WHAT, "now")?;
            let wake_at = row::moment(&row, WHAT, "wake_at")?;
            let (Some(wake_at), Some(now)) = (wake_at, now) else { continue };
            let left = row::left(wake_at, now);
            if left > horizon {
                break;
            }
            let id = row::take_text(&mut row, WHAT, "_id")?.unwrap_or_default();
            match ChatKey::decode(&id) {
                Ok(key) => due.push((key, left)),
                // One row that nobody can have written must not keep all others asleep.
                Err(error) => tracing::warn!(%error, "a stored checkpoint has no valid key"),
            }
        }
        Ok(due)
    }
}

#[async_trait]
impl ConditionalCheckpointStore for MongoStore {
    async fn adopt_checkpoint(&self, key: &ChatKey, fence: Fence) -> Result<Adopted, StoreError> {
        check_size(key.as_str(), "")?;
        let fence = number(fence)?;
        let kept =
            |field: &str| bson!({ "$cond": [live(), { "$ifNull": [field, REMOVE] }, REMOVE] });
        let pipeline = vec![
            doc! { "$set": {
                "revision": { "$ifNull": ["$revision", fresh()] },
                "prior_fence": { "$ifNull": ["$fence", REMOVE] },
                "fence": { "$max": [{ "$ifNull": ["$fence", fence] }, fence] },
                "body": kept("$body"),
                "wake_at": kept("$wake_at"),
                "ends_at": { "$cond": [live(), { "$ifNull": ["$ends_at", REMOVE] }, "$$NOW"] },
                "expires_at": kept("$expires_at"),
                "now": "$$NOW",
            } },
            settled(),
        ];
        let wanted = doc! {
            "revision": 1, "fence": 1, "prior_fence": 1, "body": 1, "wake_at": 1, "ends_at": 1,
            "expires_at": 1, "now": 1,
        };
        let operation = "adopt checkpoint";
        let mut row =
            self.upsert(operation, Repeat::Freely, ROWS, key.as_str(), pipeline, wanted).await?;
        let previous = row::optional_number(&row, WHAT, "prior_fence")?;
        Ok(Adopted { checkpoint: read(&mut row)?, previous_fence: previous.map(Fence::new) })
    }

    async fn set_checkpoint_if(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        expected: Option<Revision>,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        const OPERATION: &str = "set checkpoint";
        let id = key.as_str();
        check_size(id, write.body)?;
        let (fence, request) = (number(fence)?, self.request());
        let mut fields = written(write, &request);
        fields.insert("fence", fence);
        let Some(expected) = expected else {
            let mut pipeline = set_if(absent(fence), fields);
            pipeline.push(settled());
            return self.make(OPERATION, ROWS, id, &request, pipeline).await;
        };
        let filter = unfenced(id, expected, fence);
        let pipeline = vec![doc! { "$set": fields }, settled()];
        self.replace(OPERATION, ROWS, id, &request, filter, pipeline).await
    }

    async fn clear_checkpoint_if(
        &self,
        key: &ChatKey,
        expected: Revision,
        fence: Fence,
    ) -> Result<Swap, StoreError> {
        let (id, fence, request) = (key.as_str(), number(fence)?, self.request());
        let mut fields = cleared(&request);
        fields.insert("fence", fence);
        let filter = unfenced(id, expected, fence);
        let pipeline = vec![doc! { "$set": fields }, settled()];
        self.replace("clear checkpoint", ROWS, id, &request, filter, pipeline).await
    }
}

/// Whether there is no live row, and no higher fence was here.
pub(crate) fn absent(fence: i64) -> Bson {
    bson!({ "$and": [
        { "$not": [live()] },
        { "$lte": [{ "$ifNull": ["$fence", fence] }, fence] },
    ] })
}

/// The live row of this revision, if no higher fence was here.
pub(crate) fn unfenced(id: &str, expected: Revision, fence: i64) -> Document {
    doc! {
        "_id": id,
        "revision": stored(expected),
        "fence": { "$lte": fence },
        "$expr": live(),
    }
}
