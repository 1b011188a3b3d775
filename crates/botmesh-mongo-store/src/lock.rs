use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::id::Fence;
use botmesh_core::store::{FencedLock, LockStore, LockToken, StoreError};
use mongodb::bson::{Bson, Document, bson, doc};

use crate::expression::{REMOVE, end, grown, lasts, set_if};
use crate::store::{MongoStore, Repeat, check_size};
use crate::{row, schema};

const WHAT: &str = "a lock";

fn held_by(key: &str, token: &LockToken) -> Document {
    doc! { "_id": key, "token": token.as_str(), "$expr": lasts() }
}

impl MongoStore {
    /// Whether the row of a lock says this.
    async fn lock_says(
        &self,
        operation: &'static str,
        key: &str,
        field: &str,
        token: &LockToken,
    ) -> Result<bool, StoreError> {
        let filter = doc! { "_id": key, field: token.as_str() };
        let found = self.find(operation, schema::LOCKS, filter, doc! { "_id": 1 }).await?;
        Ok(found.is_some())
    }
}

#[async_trait]
impl LockStore for MongoStore {
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError> {
        const OPERATION: &str = "acquire lock";
        check_size(key, "")?;
        let token = LockToken::random();
        let is_held = bson!({ "$and": [{ "$eq": [{ "$type": "$token" }, "string"] }, lasts()] });
        let is_free = bson!({ "$not": [is_held] });
        let fields = doc! {
            "fence": grown("$fence"),
            "token": token.as_str(),
            "ends_at": end(Some(ttl)),
        };
        let pipeline = set_if(is_free, fields);
        let wanted = doc! { "fence": 1, "token": 1 };
        // Repeated, it finds its own token where it was applied.
        let row =
            self.upsert(OPERATION, Repeat::Freely, schema::LOCKS, key, pipeline, wanted).await?;
        if row.get("token") != Some(&Bson::String(token.as_str().to_owned())) {
            return Ok(None);
        }
        let fence = Fence::new(row::number(&row, WHAT, "fence")?);
        Ok(Some(FencedLock { token, fence }))
    }

    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let pipeline = vec![doc! { "$set": { "ends_at": end(Some(ttl)) } }];
        let update = self.update(
            "renew lock",
            Repeat::Freely,
            schema::LOCKS,
            held_by(key, token),
            pipeline,
            doc! { "_id": 1 },
        );
        Ok(update.await?.row.is_some())
    }

    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError> {
        const OPERATION: &str = "release lock";
        let pipeline = vec![doc! { "$set": {
            "token": REMOVE,
            "ends_at": "$$NOW",
            "released": token.as_str(),
        } }];
        let filter = held_by(key, token);
        let wanted = doc! { "_id": 1 };
        let update =
            self.update(OPERATION, Repeat::Freely, schema::LOCKS, filter, pipeline, wanted).await?;
        match update.row {
            Some(_) => Ok(true),
            None if update.is_doubtful => self.lock_says(OPERATION, key, "released", token).await,
            None => Ok(false),
        }
    }
}
