use std::fmt;
use std::sync::Arc;

use crate::id::{ChatKey, IdError, LeaderName};

/// What a coordinator grants to one holder at a time: a chat, or a leadership.
///
/// Both are one mechanism with one text, `chat:` or `lead:` before the id, which is what a backend
/// keeps. A chat and a leadership of the same name never meet.
///
/// ```
/// use botmesh_core::LeaderName;
/// use botmesh_core::coordination::CoordinationKey;
/// let key = CoordinationKey::from(LeaderName::new("job:report")?);
/// assert_eq!(key.as_str(), "lead:job:report");
/// assert_eq!(CoordinationKey::decode("lead:job:report")?, key);
/// # Ok::<(), botmesh_core::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CoordinationKey(Arc<str>);

const CHAT: &str = "chat:";
const LEAD: &str = "lead:";

impl CoordinationKey {
    /// Reads the text that a backend keeps.
    ///
    /// # Errors
    /// [`IdError`] when no key is written so.
    pub fn decode(text: &str) -> Result<Self, IdError> {
        if let Some(chat) = text.strip_prefix(CHAT) {
            return Ok(ChatKey::decode(chat)?.into());
        }
        match text.strip_prefix(LEAD) {
            Some(name) => Ok(LeaderName::new(name)?.into()),
            None => Err(IdError::Malformed { text: text.chars().take(80).collect() }),
        }
    }

    /// The text that a backend keeps.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The chat, if this is one.
    #[must_use]
    pub fn chat(&self) -> Option<ChatKey> {
        self.0.strip_prefix(CHAT).and_then(|text| ChatKey::decode(text).ok())
    }

    /// The leadership, if this is one.
    #[must_use]
    pub fn leader(&self) -> Option<LeaderName> {
        self.0.strip_prefix(LEAD).and_then(|text| LeaderName::new(text).ok())
    }
}

impl From<&ChatKey> for CoordinationKey {
    fn from(key: &ChatKey) -> Self {
        Self(format!("{CHAT}{key}").into())
    }
}

impl From<ChatKey> for CoordinationKey {
    fn from(key: ChatKey) -> Self {
        Self::from(&key)
    }
}

impl From<&LeaderName> for CoordinationKey {
    fn from(name: &LeaderName) -> Self {
        Self(format!("{LEAD}{name}").into())
    }
}

impl From<LeaderName> for CoordinationKey {
    fn from(name: LeaderName) -> Self {
        Self::from(&name)
    }
}

impl fmt::Display for CoordinationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CoordinationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CoordinationKey({:?})", &self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::ProviderId;

    proptest! {
        #[test]
        fn any_chat_survives_encoding(chat in ".{1,40}") {
            let provider = ProviderId::new("telegram").unwrap();
            let chat = ChatKey::new(&provider, &chat).unwrap();
            let key = CoordinationKey::from(&chat);
            prop_assert_eq!(key.chat(), Some(chat));
            prop_assert_eq!(key.leader(), None);
            prop_assert_eq!(CoordinationKey::decode(key.as_str()).unwrap(), key);
        }

        #[test]
        fn any_leader_name_survives_encoding(name in "[^\0]{1,40}") {
            let name = LeaderName::new(name).unwrap();
            let key = CoordinationKey::from(&name);
            prop_assert_eq!(key.leader(), Some(name));
            prop_assert_eq!(key.chat(), None);
            prop_assert_eq!(CoordinationKey::decode(key.as_str()).unwrap(), key);
        }
    }
}
