//! The dead letters.

use botmesh_core::ChatKey;
use botmesh_core::id::Position;
use botmesh_core::store::{DeadLetter, StoreError};
use mongodb::bson::doc;

use super::part::DEAD;
use super::{ROWS, WHAT, attempts, chat, position, stored};
use crate::row;
use crate::store::MongoStore;

impl MongoStore {
    pub(super) async fn read_dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        // A limit of zero means none to the server.
        let Some(limit) = i64::try_from(limit).ok().filter(|limit| *limit > 0) else {
            return Ok(Vec::new());
        };
        let mut chats = doc! { "dead_at": { "$type": "date" } };
        let mut letters = doc! { "records.state": DEAD };
        if let Some((chat, position)) = after {
            chats.insert("_id", doc! { "$gte": chat.as_str() });
            letters.insert(
                "$or",
                [
                    doc! { "_id": { "$gt": chat.as_str() } },
                    doc! { "records.position": { "$gt": stored(position) } },
                ],
            );
        }
        let pipeline = vec![
            doc! { "$match": chats },
            doc! { "$sort": { "_id": 1 } },
            doc! { "$unwind": "$records" },
            doc! { "$match": letters },
            doc! { "$limit": limit },
            doc! { "$project": { "records": 1, "now": "$$NOW" } },
        ];
        let mut found = Vec::new();
        for mut row in self.aggregate("read dead letters", ROWS, pipeline).await? {
            let now = row::moment(&row, WHAT, "now")?.unwrap_or_default();
            let chat = chat(&mut row)?;
            let Ok(letter) = row.get_document_mut("records") else { continue };
            let since = row::moment(letter, WHAT, "dead_at")?.unwrap_or(now);
            found.push(DeadLetter {
                chat,
                position: position(letter)?,
                attempts: attempts(letter)?,
                body: row::take_text(letter, WHAT, "body")?.unwrap_or_default(),
                error: row::take_text(letter, WHAT, "error")?.unwrap_or_default(),
                age: row::left(now, since),
            });
        }
        Ok(found)
    }
}
