use std::fmt;
use std::sync::Arc;

use botmesh_core::store::StoreError;

use crate::failure::refused;

/// The longest prefix: with the longest database name, a namespace stays below 255 bytes.
const MAX_PREFIX: usize = 32;

/// The longest name of a database, which MongoDB limits.
const MAX_DATABASE: usize = 63;

/// What the names of a bot's collections begin with, so that bots can share a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix(Arc<str>);

impl Prefix {
    /// Checks and takes the text.
    pub(crate) fn new(text: &str) -> Result<Self, StoreError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        // `system.` is the only reserved beginning, and a prefix has no dot.
        if begins && text.len() <= MAX_PREFIX && text.chars().all(fits) {
            return Ok(Self(text.into()));
        }
        let shown: String = text.chars().take(80).collect();
        Err(refused(
            "its settings",
            format!(
                "{shown:?} cannot be a prefix of collections: use up to {MAX_PREFIX} of 'a' to \
                 'z', '0' to '9' and '_', the first one a letter"
            ),
        ))
    }

    /// The name of a collection.
    pub(crate) fn collection(&self, kind: &str) -> String {
        format!("{}{kind}", self.0)
    }
}

impl Default for Prefix {
    fn default() -> Self {
        Self("botmesh_".into())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the name of a database. The rules are those of servers on every system.
/// <https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions>
pub(crate) fn check_database(name: &str) -> Result<(), StoreError> {
    let forbidden = |c: char| c == '\0' || c == ' ' || "/\\.\"$*<>:|?".contains(c);
    if !name.is_empty() && name.len() <= MAX_DATABASE && !name.contains(forbidden) {
        return Ok(());
    }
    let shown: String = name.chars().take(80).collect();
    Err(refused(
        "its settings",
        format!(
            "{shown:?} cannot be the name of a database: use up to {MAX_DATABASE} bytes, without \
             spaces and the characters /\\.\"$*<>:|?"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B6: a prefix can only be a part of a name.
    #[test]
    fn only_beginnings_of_names_are_prefixes() {
        for text in ["a", "botmesh_", "c1_", &"x".repeat(32)] {
            assert!(Prefix::new(text).is_ok(), "{text:?}");
        }
        for text in ["", "1a", "_a", "A", "a b", "a.b", "a$", "system.", "é", &"x".repeat(33)] {
            assert!(Prefix::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_that_a_server_refuses_are_refused_before() {
        for name in ["bots", "Bots-2", "é", &"x".repeat(63)] {
            assert!(check_database(name).is_ok(), "{name:?}");
        }
        for name in ["", "a b", "a.b", "a/b", "a$b", "a\0b", "a:b", &"x".repeat(64)] {
            assert!(check_database(name).is_err(), "{name:?}");
        }
    }
}
