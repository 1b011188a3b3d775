use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;

/// A token, a password or a signing secret. It is shown nowhere by accident: neither `Debug` nor
/// `Display` has it, and comparing takes as long for a wrong secret as for the right one.
///
/// ```
/// use botmesh_core::provider::Secret;
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// assert!(secret.matches(b"hunter2"));
/// assert!(!secret.matches(b"hunter3"));
/// ```
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps the text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the platform alone.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the secret. How long this takes depends on the lengths alone.
    #[must_use]
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// `text` without the secret, for errors of libraries that may show it.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&*self.0, "…") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7: a secret is taken out of whatever a library says.
    #[test]
    fn a_secret_is_shown_by_nothing() {
        let secret = Secret::new("12:abc");
        assert!(!format!("{secret:?} {secret:#?}").contains("abc"));
        let said = "error for url (https://api.example/bot12:abc/getMe)";
        assert_eq!(secret.redacted(said), "error for url (https://api.example/bot…/getMe)");
        assert_eq!(Secret::new("").redacted("same"), "same");
        assert!(!secret.matches(b"") && !secret.matches(b"12:abcd") && secret.matches(b"12:abc"));
    }
}
