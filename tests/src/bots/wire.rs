//! The protocol between the platform and the provider of a replica: lines of JSON over TCP.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::notes::{Life, MessageNumber};
use crate::history::Nanos;

/// What a replica tells the platform.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromBot {
    /// The first line of a connection.
    Hello {
        /// Who it is.
        life: Life,
        /// For which provider.
        provider: String,
    },
    /// A message was accepted.
    Taken {
        /// Which.
        message: MessageNumber,
    },
    /// A message was not accepted: it is to come again, to whomever.
    Refused {
        /// Which.
        message: MessageNumber,
    },
    /// A reply.
    Send {
        /// Counts the sends of the replica.
        number: u64,
        /// The key of the chat.
        chat: String,
        /// The words.
        text: String,
        /// What a platform that recognises repeated sends tells them by.
        key: Option<String>,
        /// The fence of the turn that the replica has.
        fence: Option<u64>,
        /// Before it looked at its guard.
        checked: Nanos,
        /// What the guard answered.
        allowed: bool,
    },
}

/// What the platform tells a replica.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToBot {
    /// A user has said something.
    Message {
        /// Its number, which is its id.
        message: MessageNumber,
        /// The key of the chat.
        chat: String,
        /// The words.
        text: String,
    },
    /// A reply has arrived.
    Sent {
        /// Which.
        number: u64,
    },
}

/// Reads what the other side writes.
#[derive(Debug)]
pub struct Reader(Lines<BufReader<OwnedReadHalf>>);

impl Reader {
    /// Reads from this half of a connection.
    #[must_use]
    pub fn new(half: OwnedReadHalf) -> Self {
        Self(BufReader::new(half).lines())
    }

    /// The next line; none when the connection has ended.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let line = self.0.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }
}

/// Writes what comes through the channel, until it or the connection ends. Whoever is cut off in
/// the middle of a call leaves whole lines.
pub async fn write<T: Serialize>(mut half: OwnedWriteHalf, mut lines: mpsc::UnboundedReceiver<T>) {
    while let Some(line) = lines.recv().await {
        let Ok(mut line) = serde_json::to_vec(&line) else { return };
        line.push(b'\n');
        if half.write_all(&line).await.is_err() {
            return;
        }
    }
}
