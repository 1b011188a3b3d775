use std::collections::HashMap;

use super::sharded::{Series, shrink};
use super::{Collection, Document, Moment, Revision, Swap};

/// One shard of the documents. A removed document leaves nothing: all revisions of a shard come
/// from one series, so one made anew never gets an old revision.
#[derive(Default)]
pub(super) struct Documents {
    chats: HashMap<Box<str>, Row>,
    users: HashMap<Box<str>, Row>,
    revisions: Series,
}

struct Row {
    revision: Revision,
    body: Box<str>,
}

impl Documents {
    fn rows(&mut self, collection: Collection) -> &mut HashMap<Box<str>, Row> {
        match collection {
            Collection::Chats => &mut self.chats,
            Collection::Users => &mut self.users,
        }
    }

    pub(super) fn load(&mut self, collection: Collection, key: &str) -> Option<Document> {
        let row = self.rows(collection).get(key)?;
        Some(Document { revision: row.revision, body: row.body.as_ref().into() })
    }

    pub(super) fn save_if(
        &mut self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
        now: Moment,
    ) -> Swap {
        let revision = Revision::new(self.revisions.next(now));
        let rows = self.rows(collection);
        match (rows.get_mut(key), expected) {
            (Some(row), Some(expected)) if row.revision == expected => {
                *row = Row { revision, body: body.into() };
            }
            (None, None) => {
                rows.insert(key.into(), Row { revision, body: body.into() });
            }
            _ => return Swap::Refused,
        }
        Swap::Applied(revision)
    }

    pub(super) fn remove_if(
        &mut self,
        collection: Collection,
        key: &str,
        expected: Revision,
        now: Moment,
    ) -> Swap {
        let rows = self.rows(collection);
        if rows.get(key).is_none_or(|row| row.revision != expected) {
            return Swap::Refused;
        }
        rows.remove(key);
        shrink(rows);
        Swap::Applied(Revision::new(self.revisions.next(now)))
    }
}
