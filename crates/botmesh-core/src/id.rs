//! Identities: who, where and which one. Each is a type of its own, checked once where it enters.

mod chat_key;
mod hash;
mod name;
mod number;

pub use chat_key::{ChatKey, UserKey};
pub(crate) use hash::StableHash;
pub use name::{ConversationName, IncarnationId, LeaderName, MessageId, ProviderId, ReplicaId};
pub use number::{Fence, Position, Revision};

use thiserror::Error;

/// Longest text of one id or encoded key, in bytes.
pub const MAX_ID_BYTES: usize = 1024;

/// Why a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text is empty.
    #[error("{what} is empty: give it at least one character")]
    Empty {
        /// Which id was read.
        what: &'static str,
    },
    /// The text is longer than [`MAX_ID_BYTES`].
    #[error("{what} has {length} bytes: at most {MAX_ID_BYTES} are allowed")]
    TooLong {
        /// Which id was read.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
    },
    /// A character that this id cannot hold.
    #[error("{what} cannot hold {character:?}: allowed are {allowed}")]
    Character {
        /// Which id was read.
        what: &'static str,
        /// The first character that is refused.
        character: char,
        /// The allowed characters, in words.
        allowed: &'static str,
    },
    /// A stored key that no encoder wrote.
    #[error(
        "{text:?} is not an encoded chat key: expected provider:chat or provider:chat#participant"
    )]
    Malformed {
        /// The text that was read.
        text: String,
    },
}
