//! Where the messages go that servers push.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use redis::aio::{AsyncPushSender, SendError};
use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc::UnboundedSender;

/// Hears a message at once, within the task of its connection: the channel and the text. It must
/// not block.
pub(crate) type Listener = Arc<dyn Fn(&[u8], &[u8]) + Send + Sync>;

/// The listener to the messages of a link, whichever connection they come from.
#[derive(Clone, Default)]
pub(crate) struct Listening(Arc<Mutex<Option<Listener>>>);

impl Listening {
    /// Hears all messages from now on, in place of the listener before.
    pub(crate) fn set(&self, listener: Listener) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    fn get(&self) -> Option<Listener> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Takes what is pushed over one connection: messages go to the listener, everything else, and
/// messages that nobody listens to, into the queue.
#[derive(Clone)]
pub(crate) struct Pushes {
    pub(crate) listening: Listening,
    pub(crate) queue: UnboundedSender<PushInfo>,
}

impl AsyncPushSender for Pushes {
    fn send(&self, info: PushInfo) -> Result<(), SendError> {
        if let PushKind::Message | PushKind::SMessage = info.kind
            && let [Value::BulkString(channel), Value::BulkString(text)] = info.data.as_slice()
            && let Some(listener) = self.listening.get()
        {
            listener(channel, text);
            return Ok(());
        }
        self.queue.send(info).map_err(|_| SendError)
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listening").field(&self.get().is_some()).finish()
    }
}
