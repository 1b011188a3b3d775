//! Which chats somebody has to look after.

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::ProviderId;
use botmesh_core::store::StoreError;
use mongodb::bson::{bson, doc};

use super::part::{PENDING, changed, has_passed, indexed, is_state};
use super::{ROWS, WHAT, chat};
use crate::expression::end;
use crate::row;
use crate::store::MongoStore;

impl MongoStore {
    pub(super) async fn take_waiting_chats(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        // A limit of zero means none to the server.
        let Some(limit) = i64::try_from(limit).ok().filter(|limit| *limit > 0) else {
            return Ok(Vec::new());
        };
        // The index gives the longest ended; the others are left out here, because a bound that
        // the server's clock decides need not be a bound of the index.
        let pipeline = vec![
            doc! { "$match": { "provider": provider.as_str(), "lease_at": { "$type": "date" } } },
            doc! { "$sort": { "lease_at": 1 } },
            doc! { "$limit": limit },
            doc! { "$project": { "lease_at": 1, "now": "$$NOW" } },
        ];
        let mut chats = Vec::new();
        for mut row in self.aggregate("find waiting chats", ROWS, pipeline).await? {
            let ended = row::moment(&row, WHAT, "lease_at")?;
            if ended > row::moment(&row, WHAT, "now")? {
                break;
            }
            chats.push(chat(&mut row)?);
        }
        if chats.is_empty() {
            return Ok(chats);
        }
        let has_ended = bson!({ "$and": [is_state(PENDING), has_passed("$$each.lease_at")] });
        let leased = changed(has_ended, doc! { "lease_at": end(Some(lease)) });
        let mut pipeline = vec![doc! { "$set": { "records": leased } }];
        pipeline.extend(indexed());
        let ids: Vec<&str> = chats.iter().map(ChatKey::as_str).collect();
        let filter = doc! { "_id": { "$in": ids }, "$expr": has_passed("$lease_at") };
        self.update_all("take waiting chats", ROWS, filter, pipeline).await?;
        Ok(chats)
    }
}
