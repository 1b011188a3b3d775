use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Longest prefix, so that the longest table name fits every backend.
const MAX_BYTES: usize = 32;

/// What the names of a bot's tables begin with, and in which schema they lie, so that bots can
/// share a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TablePrefix {
    prefix: Arc<str>,
    schema: Option<Arc<str>>,
}

/// Why a text cannot be a table prefix or the name of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{text:?} cannot be a {what}: use up to {MAX_BYTES} of 'a' to 'z', '0' to '9' and '_', the first one a letter"
)]
pub struct PrefixError {
    what: &'static str,
    text: String,
}

fn checked(what: &'static str, text: &str) -> Result<Arc<str>, PrefixError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
    if begins && text.len() <= MAX_BYTES && text.chars().all(fits) {
        Ok(text.into())
    } else {
        Err(PrefixError { what, text: text.chars().take(80).collect() })
    }
}

impl TablePrefix {
    /// Checks and takes the text.
    ///
    /// # Errors
    /// [`PrefixError`] when it is no beginning of a table name.
    pub fn new(text: &str) -> Result<Self, PrefixError> {
        Ok(Self { prefix: checked("table prefix", text)?, schema: None })
    }

    /// The same prefix in this schema, instead of where the connection looks first.
    ///
    /// # Errors
    /// [`PrefixError`] when it is no name of a schema.
    pub fn in_schema(mut self, schema: &str) -> Result<Self, PrefixError> {
        self.schema = Some(checked("schema", schema)?);
        Ok(self)
    }

    /// The prefix, without the schema.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.prefix
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Writes what a table's name begins with in a statement. A schema is quoted, for its name may
    /// be a keyword.
    pub(crate) fn write_qualified(&self, statement: &mut String) {
        if let Some(schema) = &self.schema {
            statement.extend(["\"", schema, "\"."]);
        }
        statement.push_str(&self.prefix);
    }
}

impl Default for TablePrefix {
    fn default() -> Self {
        Self { prefix: "botmesh_".into(), schema: None }
    }
}

impl fmt::Display for TablePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.prefix)
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
            assert!(TablePrefix::default().in_schema(text).is_err(), "{text:?}");
        }
    }
}
