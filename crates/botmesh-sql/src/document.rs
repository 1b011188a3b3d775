use async_trait::async_trait;
use botmesh_core::Revision;
use botmesh_core::store::{Collection, Document, DocumentStore, StoreError, Swap};

use crate::dialect::Dialect;
use crate::driver::Driver;
use crate::prefix::TablePrefix;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::write::{Tells, Update, Upsert};

#[derive(Debug)]
pub(crate) struct Statements {
    load: Statement,
    create: Statement,
    replace: Statement,
    remove: Statement,
}

const CREATE: Upsert<'_> = Upsert {
    table: "documents",
    key: &["collection", "name"],
    insert: &[("collection", "{1}"), ("name", "{2}"), ("revision", "{fresh}"), ("body", "{3}")],
    from: None,
    only_if: Some("{t}body IS NULL"),
    change: &[("revision", NEXT), ("body", "{new body}"), ("ends_at", "NULL")],
    tells: Tells::Number("revision"),
};

const REPLACE: Update<'_> = Update {
    table: "documents",
    change: &[("revision", NEXT), ("body", "{3}")],
    only_if: "collection = {1} AND name = {2} AND revision = {4} AND body IS NOT NULL",
    tells: Tells::Number("revision"),
};

const REMOVE: Update<'_> = Update {
    change: &[("revision", NEXT), ("body", "NULL"), ("ends_at", "{now}")],
    only_if: "collection = {1} AND name = {2} AND revision = {3} AND body IS NOT NULL",
    ..REPLACE
};

const NEXT: &str = "{greatest}({now}, {t}revision + 1)";

impl Statements {
    pub(crate) fn new(dialect: &Dialect, names: &TablePrefix) -> Self {
        Self {
            load: dialect.statement(
                "SELECT revision, body FROM {p}documents
                WHERE collection = {1} AND name = {2} AND body IS NOT NULL",
                names,
            ),
            create: CREATE.statement(dialect, names),
            replace: REPLACE.statement(dialect, names),
            remove: REMOVE.statement(dialect, names),
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
        let values = vec![collection.as_str().into(), self.key(key)?];
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
        let mut values = vec![collection.as_str().into(), self.key(key)?, self.text("body", body)?];
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
        let values = vec![collection.as_str().into(), self.key(key)?, Self::revision(expected)];
        self.swap("remove document", &self.documents.remove, values).await
    }
}
