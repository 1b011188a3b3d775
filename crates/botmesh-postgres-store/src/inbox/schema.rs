//! The functions that execute steps, several in one statement.

use botmesh_core::store::StoreError;
use botmesh_sql::{Part, SqlStore, migrate};

use crate::driver::PostgresDriver;

const SEVERAL: Part = Part {
    name: "inbox steps",
    versions: &[&[
        include_str!("sql/begin.sql"),
        include_str!("sql/commit.sql"),
        include_str!("sql/several.sql"),
    ]],
};

/// Creates the functions, or brings them to this version.
pub(crate) async fn prepare(store: &SqlStore<PostgresDriver>) -> Result<(), StoreError> {
    migrate(store.driver(), store.prefix(), &SEVERAL).await
}
