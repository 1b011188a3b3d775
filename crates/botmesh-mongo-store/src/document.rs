use async_trait::async_trait;
use botmesh_core::id::Revision;
use botmesh_core::store::{Collection, Document, DocumentStore, StoreError, Swap};
use mongodb::bson::{bson, doc};

use crate::expression::{REMOVE, grown, literal, set_if};
use crate::store::{MongoStore, check_size, stored};
use crate::{row, schema};

const WHAT: &str = "a document";

/// Collections have fixed names without a colon, so keys of different ones never meet.
fn id(collection: Collection, key: &str) -> String {
    format!("{}:{key}", collection.as_str())
}

#[async_trait]
impl DocumentStore for MongoStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        let filter = doc! { "_id": id(collection, key), "body": { "$type": "string" } };
        let wanted = doc! { "revision": 1, "body": 1 };
        let found = self.find("load document", schema::DOCUMENTS, filter, wanted).await?;
        let Some(mut found) = found else { return Ok(None) };
        let revision = row::revision(&found, WHAT)?;
        let body = row::take_text(&mut found, WHAT, "body")?;
        Ok(body.map(|body| Document { revision, body }))
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        const OPERATION: &str = "save document";
        let id = id(collection, key);
        check_size(&id, body)?;
        let request = self.request();
        let fields = doc! {
            "revision": grown("$revision"),
            "body": literal(body),
            "ends_at": REMOVE,
            "request": &request,
        };
        let Some(expected) = expected else {
            let is_absent = bson!({ "$ne": [{ "$type": "$body" }, "string"] });
            let pipeline = set_if(is_absent, fields);
            return self.make(OPERATION, schema::DOCUMENTS, &id, &request, pipeline).await;
        };
        let filter =
            doc! { "_id": &id, "revision": stored(expected), "body": { "$type": "string" } };
        let pipeline = vec![doc! { "$set": fields }];
        self.replace(OPERATION, schema::DOCUMENTS, &id, &request, filter, pipeline).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        let (id, request) = (id(collection, key), self.request());
        let filter =
            doc! { "_id": &id, "revision": stored(expected), "body": { "$type": "string" } };
        let pipeline = vec![doc! { "$set": {
            "revision": grown("$revision"),
            "body": REMOVE,
            "ends_at": "$$NOW",
            "request": &request,
        } }];
        let collection = schema::DOCUMENTS;
        self.replace("remove document", collection, &id, &request, filter, pipeline).await
    }
}
