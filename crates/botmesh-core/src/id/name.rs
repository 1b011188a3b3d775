use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::{IdError, MAX_ID_BYTES};

fn check_any(what: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong { what, length: text.len() });
    }
    if text.contains('\0') {
        return Err(IdError::Character {
            what,
            character: '\0',
            allowed: "all characters but NUL",
        });
    }
    Ok(())
}

fn check_word(what: &'static str, text: &str) -> Result<(), IdError> {
    check_any(what, text)?;
    let refused = |c: &char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(*c));
    match text.chars().find(refused) {
        Some(character) => {
            Err(IdError::Character { what, character, allowed: "a to z, 0 to 9, '.', '_' and '-'" })
        }
        None => Ok(()),
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes the text.
            ///
            /// # Errors
            /// [`IdError`] when the text is empty, too long or holds a refused character.
            pub fn new(text: impl Into<Arc<str>>) -> Result<Self, IdError> {
                let text = text.into();
                $check($what, &text)?;
                Ok(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = IdError;
            fn try_from(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

text_id!(
    /// One configured provider, such as `telegram` or `whatsapp.sales`. It is the first part of
    /// every [`ChatKey`](super::ChatKey), so it must stay the same over restarts.
    ProviderId,
    "a provider id",
    check_word
);
text_id!(
    /// The platform's id of one message; unique within its chat.
    MessageId,
    "a message id",
    check_any
);
text_id!(
    /// One running process of a bot; unique among the replicas that share a backend.
    ReplicaId,
    "a replica id",
    check_any
);
text_id!(
    /// One lifetime of a coordinator: the replica id and a random nonce. A restarted replica has
    /// another incarnation, so it never inherits the rights of the process that died.
    IncarnationId,
    "an incarnation",
    check_any
);
text_id!(
    /// What replicas can be elected for, such as `provider:telegram` or `job:report`.
    LeaderName,
    "a leader name",
    check_any
);
text_id!(
    /// The name of a flow or of an asynchronous conversation; unique within a bot.
    ConversationName,
    "a conversation name",
    check_any
);

impl ReplicaId {
    /// A random replica id.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().to_string().into())
    }
}

impl IncarnationId {
    /// A fresh incarnation of `replica`: its id, `#` and 96 random bits.
    #[must_use]
    pub fn fresh(replica: &ReplicaId) -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        // The last 24 of the 32 hexadecimal digits: 96 bits less the two fixed variant bits.
        Self(format!("{}#{}", replica.as_str(), &random[8..]).into())
    }
}
