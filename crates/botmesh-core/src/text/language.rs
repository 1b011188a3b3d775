use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use unic_langid::LanguageIdentifier;

/// A language as a BCP 47 tag, such as `en` or `es-CO`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Language(LanguageIdentifier);

/// The text is no language tag.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{tag:?} is not a language tag: write it as in \"en\" or \"es-CO\"")]
pub struct LanguageError {
    tag: String,
}

impl Language {
    /// Reads a BCP 47 tag; `_` is taken for `-`.
    ///
    /// # Errors
    /// [`LanguageError`] when the text is no language tag.
    pub fn new(tag: &str) -> Result<Self, LanguageError> {
        tag.parse().map(Self).map_err(|_| LanguageError { tag: tag.chars().take(80).collect() })
    }

    /// English, the language that every built-in text exists in.
    #[must_use]
    pub fn english() -> Self {
        Self(unic_langid::langid!("en"))
    }

    /// The identifier for the libraries of the Unicode and Fluent families.
    #[must_use]
    pub const fn identifier(&self) -> &LanguageIdentifier {
        &self.0
    }

    /// The same language without script, region and variants: `es` for `es-CO`.
    #[must_use]
    pub fn base(&self) -> Self {
        Self(LanguageIdentifier::from_parts(self.0.language, None, None, &[]))
    }
}

impl FromStr for Language {
    type Err = LanguageError;
    fn from_str(tag: &str) -> Result<Self, LanguageError> {
        Self::new(tag)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Language({})", self.0)
    }
}

impl Serialize for Language {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Language {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tag = String::deserialize(deserializer)?;
        Self::new(&tag).map_err(serde::de::Error::custom)
    }
}
