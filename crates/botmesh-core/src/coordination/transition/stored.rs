//! The state as a database keeps it: the same fields, open to be written and read.

use serde::{Deserialize, Serialize};

use super::ServerTime;
use super::operation::TicketId;
use super::record::TurnRecord;
use super::session::{Session, SessionTable};
use crate::coordination::hold::PreviousHolder;
use crate::id::IncarnationId;

/// The sessions and what they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSpace {
    /// No fence below is granted any more.
    pub floor: u64,
    /// Nothing is granted before.
    pub grace_until: ServerTime,
    /// The run of the server that wrote this; none when it was just made.
    pub server: Option<String>,
    /// Since when that run is known; none for a space that is known to be new.
    pub server_since: Option<ServerTime>,
    /// When a heartbeat last showed that the clock had been set forward.
    pub jumped_at: ServerTime,
    /// By incarnation.
    pub sessions: Vec<StoredSession>,
}

/// One session and its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSession {
    /// Whose it is.
    pub incarnation: IncarnationId,
    /// The rest of it.
    #[serde(flatten)]
    pub session: Session,
}

/// The record of one key. The default is its absence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTurn {
    /// The ticket that holds the key.
    pub holder: Option<TicketId>,
    /// Of the present or the last grant; zero when there was none.
    pub fence: u64,
    /// While held: who held it before. While free: who held it last.
    pub previous: Option<PreviousHolder>,
    /// The waiting tickets, the next one first.
    pub queue: Vec<TicketId>,
    /// From then on the record counts as absent, and may be deleted.
    pub expires_at: ServerTime,
}

impl From<StoredSpace> for SessionTable {
    fn from(stored: StoredSpace) -> Self {
        let StoredSpace { floor, grace_until, server, server_since, jumped_at, sessions } = stored;
        Self {
            sessions: sessions
                .into_iter()
                .map(|StoredSession { incarnation, session }| (incarnation, session))
                .collect(),
            floor,
            grace_until,
            server: server.map(Into::into),
            server_since,
            jumped_at,
        }
    }
}

impl From<&SessionTable> for StoredSpace {
    fn from(table: &SessionTable) -> Self {
        let sessions = table.sessions.iter().map(|(incarnation, session)| StoredSession {
            incarnation: incarnation.clone(),
            session: session.clone(),
        });
        Self {
            floor: table.floor,
            grace_until: table.grace_until,
            server: table.server.as_deref().map(str::to_owned),
            server_since: table.server_since,
            jumped_at: table.jumped_at,
            sessions: sessions.collect(),
        }
    }
}

impl From<StoredTurn> for TurnRecord {
    fn from(stored: StoredTurn) -> Self {
        let StoredTurn { holder, fence, previous, queue, expires_at } = stored;
        Self { holder, fence, previous, queue: queue.into(), expires_at }
    }
}

impl From<TurnRecord> for StoredTurn {
    fn from(record: TurnRecord) -> Self {
        let TurnRecord { holder, fence, previous, queue, expires_at } = record;
        Self { holder, fence, previous, queue: queue.into(), expires_at }
    }
}
