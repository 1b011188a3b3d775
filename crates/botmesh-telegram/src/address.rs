use std::fmt::Write as _;

use botmesh_core::{ChatKey, IdError, ProviderId};

/// Where a message belongs in Telegram: a chat, perhaps a topic in it, perhaps on behalf of a
/// business account.
///
/// In a chat key it is written as `chat`, `chat/topic`, or either with `@connection` behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) chat: i64,
    pub(crate) topic: Option<i32>,
    pub(crate) business: Option<String>,
}

impl Address {
    pub(crate) const fn chat(chat: i64) -> Self {
        Self { chat, topic: None, business: None }
    }

    /// The key of the chat for one participant, or for all where there is no such thing.
    pub(crate) fn key(
        &self,
        provider: &ProviderId,
        participant: Option<i64>,
    ) -> Result<ChatKey, IdError> {
        let mut text = self.chat.to_string();
        // Writing to a String cannot fail.
        if let Some(topic) = self.topic {
            let _ = write!(text, "/{topic}");
        }
        if let Some(business) = &self.business {
            let _ = write!(text, "@{business}");
        }
        let key = ChatKey::new(provider, &text)?;
        match participant {
            Some(participant) => key.for_participant(&participant.to_string()),
            None => Ok(key),
        }
    }

    /// The address in a chat key; none if it is not one of Telegram's.
    pub(crate) fn of(key: &ChatKey) -> Option<Self> {
        let text = key.chat();
        let (place, business) = match text.split_once('@') {
            Some((place, business)) => (place, Some(business.to_owned())),
            None => (&*text, None),
        };
        let (chat, topic) = match place.split_once('/') {
            Some((chat, topic)) => (chat, Some(topic.parse().ok()?)),
            None => (place, None),
        };
        Some(Self { chat: chat.parse().ok()?, topic, business })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// D9: a chat key says where to answer, whoever takes part.
        #[test]
        fn an_address_survives_its_chat_key(
            chat: i64, topic: Option<i32>, business in proptest::option::of("[a-zA-Z0-9_-]{1,40}"),
            participant: Option<i64>,
        ) {
            let provider = ProviderId::new("telegram").unwrap();
            let address = Address { chat, topic, business };
            let key = address.key(&provider, participant).unwrap();
            prop_assert_eq!(Address::of(&key), Some(address));
            let found = key.participant().map(|found| found.parse::<i64>().unwrap());
            prop_assert_eq!(found, participant);
        }

        #[test]
        fn no_chat_id_makes_it_panic(text in ".{1,40}") {
            let provider = ProviderId::new("telegram").unwrap();
            let _ = Address::of(&ChatKey::new(&provider, &text).unwrap());
        }
    }
}
