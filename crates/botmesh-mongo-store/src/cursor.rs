//! Reads cursors to their end.

use mongodb::Cursor;
use mongodb::bson::Document;
use mongodb::error::Error;

/// All documents of a cursor.
pub(crate) async fn all(mut cursor: Cursor<Document>) -> Result<Vec<Document>, Error> {
    let mut found = Vec::new();
    while cursor.advance().await? {
        found.push(cursor.deserialize_current()?);
    }
    Ok(found)
}
