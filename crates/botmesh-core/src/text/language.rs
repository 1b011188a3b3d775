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
        let refused = || LanguageError { tag: tag.chars().take(80).collect() };
        let language: LanguageIdentifier = tag.parse().map_err(|_| refused())?;
        // Variants are put in order, and then the first of them may read as a script.
        let is_lasting = language.variants().len() == 0
            || language
                .to_string()
                .parse()
                .is_ok_and(|again: LanguageIdentifier| again == language);
        if is_lasting { Ok(Self(language)) } else { Err(refused()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A8: a language is the same at another replica, or is none.
    #[test]
    fn a_tag_that_would_read_otherwise_once_written_is_refused() {
        for tag in ["en", "es_CO", "zh-Hant-TW", "ca-valencia", "de-1996-1901", "sl-rozaj-biske"] {
            let language = Language::new(tag).unwrap();
            assert_eq!(Language::new(&language.to_string()), Ok(language));
        }
        for tag in ["", "english language", "update_total_ames"] {
            assert!(Language::new(tag).is_err(), "{tag} was taken");
        }
    }
}
