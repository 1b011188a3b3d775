//! What the records of the inbox are about, and how it is written.

use serde::{Deserialize, Serialize};

use crate::error::BotError;
use crate::id::{MessageId, Revision};
use crate::message::Message;

/// What a record of the inbox is about.
pub(crate) enum Recorded {
    /// A message that came in. Boxed: it passes through many hands, of which each would copy it.
    Message(Box<Message>),
    /// A conversation whose moment has come.
    Wake(DueWake),
}

/// A stored conversation whose moment has come. It means the wait with this checkpoint, and nothing
/// once the conversation has moved on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DueWake {
    /// The revision of the checkpoint.
    pub(super) revision: Revision,
    /// Whether the user was silent for a while, and the wait goes on.
    pub(super) is_idle: bool,
}

/// A wake as it is written. No message looks like it.
#[derive(Serialize, Deserialize)]
struct Written {
    wake: WrittenWake,
}

#[derive(Serialize, Deserialize)]
struct WrittenWake {
    revision: u64,
    #[serde(default)]
    is_idle: bool,
}

impl DueWake {
    /// Under this id the inbox knows the wake, so that it is there once whoever notices that it is
    /// due. Should a platform ever give a message the same id, its chat loses one of the two.
    pub(super) fn id(self) -> Result<MessageId, BotError> {
        let kind = if self.is_idle { "idle" } else { "due" };
        Ok(MessageId::new(format!("wake/{kind}/{}", self.revision.get()))?)
    }

    pub(super) fn body(self) -> Result<String, BotError> {
        let Self { revision, is_idle } = self;
        let wake = WrittenWake { revision: revision.get(), is_idle };
        Ok(serde_json::to_string(&Written { wake })?)
    }
}

impl Recorded {
    /// Reads the body of a record.
    pub(super) fn read(body: &str) -> Result<Self, serde_json::Error> {
        let error = match serde_json::from_str(body) {
            Ok(message) => return Ok(Self::Message(message)),
            Err(error) => error,
        };
        let Ok(Written { wake }) = serde_json::from_str(body) else { return Err(error) };
        let WrittenWake { revision, is_idle } = wake;
        Ok(Self::Wake(DueWake { revision: Revision::new(revision), is_idle }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ChatKey, ProviderId};

    #[test]
    fn a_message_and_a_wake_are_told_apart() {
        let chat = ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap();
        let message = Message::text(chat, "{\"wake\":{\"revision\":1}}");
        let body = serde_json::to_string(&message).unwrap();
        let Ok(Recorded::Message(read)) = Recorded::read(&body) else { panic!("{body}") };
        assert_eq!(*read, message);
        for is_idle in [false, true] {
            let wake = DueWake { revision: Revision::new(u64::MAX), is_idle };
            let Ok(Recorded::Wake(read)) = Recorded::read(&wake.body().unwrap()) else { panic!() };
            assert_eq!(read, wake);
        }
    }

    #[test]
    fn what_is_neither_is_an_error_that_tells_what_a_message_lacks() {
        for body in ["", "[]", "{}", "{\"wake\":{}}", "{\"wake\":{\"revision\":-1}}", "nonsense"] {
            assert!(Recorded::read(body).is_err(), "{body}");
        }
    }
}
