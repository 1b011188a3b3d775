use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{IdError, MAX_ID_BYTES, ProviderId};

/// One chat: the provider, its chat id and, in groups, the participant.
///
/// It is kept in its encoded form, `provider:chat` or `provider:chat#participant`, which is free
/// of NUL and injective: different chats have different texts, whatever characters the platform
/// puts into its ids. Cloning is cheap.
///
/// ```
/// use botmesh_core::{ChatKey, ProviderId};
/// let telegram = ProviderId::new("telegram")?;
/// let key = ChatKey::new(&telegram, "-100#7")?.for_participant("42")?;
/// assert_eq!(key.as_str(), "telegram:-100%237#42");
/// assert_eq!(key.chat(), "-100#7");
/// assert_eq!(key.participant().as_deref(), Some("42"));
/// # Ok::<(), botmesh_core::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChatKey(Arc<str>);

impl ChatKey {
    /// The key of a chat with one person, or of a whole group.
    ///
    /// # Errors
    /// [`IdError`] when `chat` is empty or the encoded key has more than [`MAX_ID_BYTES`].
    pub fn new(provider: &ProviderId, chat: &str) -> Result<Self, IdError> {
        if chat.is_empty() {
            return Err(IdError::Empty { what: "a chat id" });
        }
        let mut text = String::with_capacity(provider.as_str().len() + 1 + chat.len());
        text.push_str(provider.as_str());
        text.push(':');
        escape_into(&mut text, chat);
        Self::checked(text)
    }

    /// The key of one participant of this group.
    ///
    /// # Errors
    /// [`IdError`] when `participant` is empty or the encoded key has more than [`MAX_ID_BYTES`].
    pub fn for_participant(&self, participant: &str) -> Result<Self, IdError> {
        if participant.is_empty() {
            return Err(IdError::Empty { what: "a participant id" });
        }
        let mut text = String::from(self.without_participant());
        text.push('#');
        escape_into(&mut text, participant);
        Self::checked(text)
    }

    /// Reads an encoded key, as stores keep it.
    ///
    /// # Errors
    /// [`IdError::Malformed`] when no key encodes to this text.
    pub fn decode(text: &str) -> Result<Self, IdError> {
        let malformed = || IdError::Malformed { text: text.chars().take(80).collect() };
        let (provider, rest) = text.split_once(':').ok_or_else(malformed)?;
        let provider = ProviderId::new(provider).map_err(|_| malformed())?;
        let key = match rest.split_once('#') {
            None => Self::new(&provider, &unescape(rest)),
            Some((chat, participant)) => Self::new(&provider, &unescape(chat))
                .and_then(|key| key.for_participant(&unescape(participant))),
        }?;
        if key.as_str() == text { Ok(key) } else { Err(malformed()) }
    }

    fn checked(text: String) -> Result<Self, IdError> {
        if text.len() > MAX_ID_BYTES {
            return Err(IdError::TooLong { what: "a chat key", length: text.len() });
        }
        Ok(Self(text.into()))
    }

    fn split(&self) -> (&str, &str) {
        // Every constructor writes the colon, and a provider id cannot hold one.
        self.0.split_once(':').unwrap_or((&self.0, ""))
    }

    fn without_participant(&self) -> &str {
        self.0.split_once('#').map_or(&*self.0, |(chat, _)| chat)
    }

    /// The encoded text: what stores and coordinators use as their key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The provider's id.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.split().0
    }

    /// The platform's chat id.
    #[must_use]
    pub fn chat(&self) -> Cow<'_, str> {
        let rest = self.split().1;
        unescape(rest.split_once('#').map_or(rest, |(chat, _)| chat))
    }

    /// The platform's id of the participant, in a group.
    #[must_use]
    pub fn participant(&self) -> Option<Cow<'_, str>> {
        self.split().1.split_once('#').map(|(_, participant)| unescape(participant))
    }

    /// The user that writes in this chat when the platform names no sender: the participant, or
    /// the other side of a chat with one person.
    #[must_use]
    pub fn default_user(&self) -> UserKey {
        let (provider, rest) = self.split();
        let user = rest.split_once('#').map_or(rest, |(_, participant)| participant);
        UserKey(format!("{provider}:{user}").into())
    }
}

impl fmt::Display for ChatKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChatKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatKey({:?})", &self.0)
    }
}

impl Borrow<str> for ChatKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for ChatKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ChatKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::decode(&text).map_err(serde::de::Error::custom)
    }
}

/// One person on one provider, encoded as `provider:user`; the key of per-user data.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserKey(Arc<str>);

impl UserKey {
    /// The key of the user with the platform's id `user`.
    ///
    /// # Errors
    /// [`IdError`] when `user` is empty or the encoded key has more than [`MAX_ID_BYTES`].
    pub fn new(provider: &str, user: &str) -> Result<Self, IdError> {
        let provider = ProviderId::new(provider)?;
        let key = ChatKey::new(&provider, user)?;
        Ok(Self(key.0))
    }

    /// The encoded text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserKey({:?})", &self.0)
    }
}

fn escape_into(text: &mut String, raw: &str) {
    for character in raw.chars() {
        match character {
            '%' => text.push_str("%25"),
            '#' => text.push_str("%23"),
            '\0' => text.push_str("%00"),
            other => text.push(other),
        }
    }
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    // The percent sign comes last: what it uncovers is not read again.
    Cow::Owned(text.replace("%00", "\0").replace("%23", "#").replace("%25", "%"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn provider() -> ProviderId {
        ProviderId::new("telegram").unwrap()
    }

    proptest! {
        #[test]
        fn any_platform_ids_survive_encoding(chat in ".{1,40}", participant in ".{1,40}") {
            let group = ChatKey::new(&provider(), &chat).unwrap();
            let key = group.for_participant(&participant).unwrap();
            prop_assert_eq!(key.chat(), chat.as_str());
            prop_assert_eq!(key.participant().unwrap(), participant.as_str());
            prop_assert!(!key.as_str().contains('\0'));
            prop_assert_eq!(ChatKey::decode(key.as_str()).unwrap(), key);
            prop_assert_eq!(ChatKey::decode(group.as_str()).unwrap(), group);
        }

        #[test]
        fn different_chats_have_different_keys(
            a in "[%#:025a]{1,6}", b in "[%#:025a]{1,6}", c in "[%#:025a]{0,6}",
        ) {
            let plain = ChatKey::new(&provider(), &a).unwrap();
            let other = ChatKey::new(&provider(), &b).unwrap();
            prop_assert_eq!(a == b, plain == other);
            if !c.is_empty() {
                prop_assert_ne!(other.for_participant(&c).unwrap(), plain);
            }
        }

        #[test]
        fn decoding_never_panics_and_accepts_only_what_encodes(text in ".{0,60}") {
            if let Ok(key) = ChatKey::decode(&text) {
                prop_assert_eq!(key.as_str(), text);
            }
        }
    }

    #[test]
    fn an_empty_or_giant_chat_id_is_refused() {
        assert_eq!(ChatKey::new(&provider(), ""), Err(IdError::Empty { what: "a chat id" }));
        let giant = "x".repeat(MAX_ID_BYTES);
        assert!(matches!(ChatKey::new(&provider(), &giant), Err(IdError::TooLong { .. })));
    }

    #[test]
    fn the_user_of_a_group_chat_is_its_participant() {
        let group = ChatKey::new(&provider(), "g#1").unwrap();
        assert_eq!(group.default_user(), UserKey::new("telegram", "g#1").unwrap());
        let member = group.for_participant("ana").unwrap();
        assert_eq!(member.default_user(), UserKey::new("telegram", "ana").unwrap());
    }
}
