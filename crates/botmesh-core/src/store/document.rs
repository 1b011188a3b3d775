use async_trait::async_trait;

use super::{StoreError, Swap};
use crate::id::Revision;

/// The kinds of documents. Keys of different collections are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collection {
    /// What the bot knows of a chat; the key is an encoded [`ChatKey`](crate::ChatKey).
    Chats,
    /// What the bot knows of a user; the key is an encoded [`UserKey`](crate::UserKey).
    Users,
}

impl Collection {
    /// The name that stores use in table names and keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chats => "chats",
            Self::Users => "users",
        }
    }
}

/// A stored text with the revision to name when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Names this version.
    pub revision: Revision,
    /// Any UTF-8 text without NUL, up to a mebibyte and more; botmesh keeps JSON in it.
    pub body: String,
}

/// Small texts by key, replaced by compare-and-set.
#[async_trait]
pub trait DocumentStore: Send + Sync {
    /// Reads a document. Safe to cancel.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError>;

    /// Writes a document if its present revision is `expected` (`None`: if there is none).
    ///
    /// Cancelling leaves open whether it was written.
    ///
    /// # Errors
    /// [`StoreError`]. A condition that does not hold is no error but [`Swap::Refused`].
    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError>;

    /// Removes a document if its present revision is `expected`.
    ///
    /// # Errors
    /// [`StoreError`]. A condition that does not hold is no error but [`Swap::Refused`].
    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError>;
}
