use async_trait::async_trait;
use botmesh_core::id::Revision;
use botmesh_core::store::{Collection, Document, DocumentStore, FENCE_MEMORY, StoreError, Swap};
use redis::Value;

use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

#[async_trait]
impl DocumentStore for RedisStore {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        let name = self.space().document(collection, key);
        let mut load = redis::cmd("HMGET");
        load.arg(&name).arg("r").arg("l").arg("b");
        let answer = self.read("reading a document", &load).await?;
        let [revision, live, body] = reply::array::<3>(answer, "a document")?;
        if live == Value::Nil {
            return Ok(None);
        }
        let revision = Revision::new(reply::number(revision, "the revision of a document")?);
        Ok(Some(Document { revision, body: reply::text(body, "the body of a document")? }))
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        let name = self.space().document(collection, key);
        let (expected, request) = (argument::expected(expected), self.request());
        let answer = self
            .call(
                "writing a document",
                Repeat::Freely,
                &script::DOCUMENT_SAVE,
                &[&name],
                &[expected.as_bytes(), body.as_bytes(), request.as_bytes()],
            )
            .await?;
        reply::swap(answer)
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        let name = self.space().document(collection, key);
        let (expected, request) = (argument::expected(Some(expected)), self.request());
        let memory = argument::time(FENCE_MEMORY);
        let answer = self
            .call(
                "removing a document",
                Repeat::Freely,
                &script::DOCUMENT_REMOVE,
                &[&name],
                &[expected.as_bytes(), request.as_bytes(), memory.as_bytes()],
            )
            .await?;
        reply::swap(answer)
    }
}
