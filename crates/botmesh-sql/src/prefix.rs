use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Longest prefix, so that the longest table name fits every backend.
const MAX_BYTES: usize = 32;

/// What the names of a bot's tables begin with, so that bots can share a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TablePrefix(Arc<str>);

/// Why a text cannot be a table prefix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{text:?} cannot be a table prefix: use up to {MAX_BYTES} of 'a' to 'z', '0' to '9' and '_', the first one a letter"
)]
pub struct PrefixError {
    text: String,
}

impl TablePrefix {
    /// Checks and takes the text.
    ///
    /// # Errors
    /// [`PrefixError`] when it is no beginning of a table name.
    pub fn new(text: &str) -> Result<Self, PrefixError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if begins && text.len() <= MAX_BYTES && text.chars().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(PrefixError { text: text.chars().take(80).collect() })
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for TablePrefix {
    fn default() -> Self {
        Self("botmesh_".into())
    }
}

impl fmt::Display for TablePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B6: a prefix can only be a part of a name, never a piece of SQL.
    #[test]
    fn only_beginnings_of_names_are_prefixes() {
        for text in ["a", "botmesh_", "c1_", &"x".repeat(32)] {
            assert!(TablePrefix::new(text).is_ok(), "{text:?}");
        }
        for text in ["", "1a", "_a", "A", "a b", "a;b", "a\"", "é", "a.b", &"x".repeat(33)] {
            assert!(TablePrefix::new(text).is_err(), "{text:?}");
        }
    }
}
