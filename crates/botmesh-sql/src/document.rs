use async_trait::async_trait;
use botmesh_core::Revision;
use botmesh_core::store::{Collection, Document, DocumentStore, StoreError, Swap};

use crate::dialect::Statement;
use crate::driver::Driver;
use crate::store::SqlStore;

#[derive(Debug)]
pub(crate) struct Statements {
    load: Statement,
    create: Statement,
    replace: Statement,
    remove: Statement,
}

impl Statements {
    pub(crate) fn new(render: impl Fn(&str) -> Statement) -> Self {
        Self {
            load: render(
                "SELECT revision, body FROM {p}documents
                WHERE collection = {1} AND name = {2} AND body IS NOT NULL",
            ),
            create: render(
                "INSERT INTO {p}documents AS t (collection, name, revision, body)
                VALUES ({1}, {2}, {fresh}, {3})
                ON CONFLICT (collection, name) DO UPDATE SET
                    revision = {greatest}({now}, t.revision + 1),
                    body = excluded.body, ends_at = NULL
                WHERE t.body IS NULL
                RETURNING revision",
            ),
            replace: render(
                "UPDATE {p}documents SET revision = {greatest}({now}, revision + 1), body = {3}
                WHERE collection = {1} AND name = {2} AND revision = {4} AND body IS NOT NULL
                RETURNING revision",
            ),
            remove: render(
                "UPDATE {p}documents SET
                    revision = {greatest}({now}, revision + 1), body = NULL, ends_at = {now}
                WHERE collection = {1} AND name = {2} AND revision = {3} AND body IS NOT NULL
                RETURNING revision",
            ),
        }
    }
}

#[async_trait]
impl<D: Driver> DocumentStore for SqlStore<D> {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        const OPERATION: &str = "load document";
        let values = vec![collection.as_str().into(), self.text("key", key)?];
        let Some(mut row) = self.read_row(OPERATION, &self.documents.load, values).await? else {
            return Ok(None);
        };
        let revision = Revision::new(row.number().map_err(self.named(OPERATION))?);
        let body = row.text().map_err(self.named(OPERATION))?;
        Ok(Some(Document { revision, body }))
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        let mut values =
            vec![collection.as_str().into(), self.text("key", key)?, self.text("body", body)?];
        let statement = match expected {
            None => &self.documents.create,
            Some(expected) => {
                values.push(Self::revision(expected));
                &self.documents.replace
            }
        };
        self.swap("save document", statement, values).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        let values =
            vec![collection.as_str().into(), self.text("key", key)?, Self::revision(expected)];
        self.swap("remove document", &self.documents.remove, values).await
    }
}
