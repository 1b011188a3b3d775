//! What this process has last seen of the sessions: enough to decide the usual cases without a look.

use std::sync::atomic::{AtomicU64, Ordering};

use botmesh_core::coordination::transition::{ServerTime, StoredSpace, TicketId};
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;

/// The space as it was last seen.
#[derive(Debug, Default)]
pub(super) struct Known {
    order: AtomicU64,
    seen: Mutex<(u64, StoredSpace)>,
}

/// What can be concluded from it while the server's clock shows a time within these bounds.
///
/// It may be older than the space. What may have changed since does no harm: a session that was
/// renewed lives for longer, and one that was buried belongs to a replica whose own deadline has
/// passed before, so that it does not act, and a key that it holds is taken over like that of
/// anybody dead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Nothing is granted before.
    pub(super) from: ServerTime,
    /// Fences must be higher.
    pub(super) floor: u64,
    /// Whose sessions live.
    pub(super) living: Vec<Living>,
}

/// A session that lives for as long as the clock shows a time between these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Living {
    pub(super) incarnation: IncarnationId,
    /// Before, it would seem to have been renewed by a clock that was set back meanwhile.
    pub(super) since: ServerTime,
    pub(super) until: ServerTime,
}

/// With more sessions than these the rows are looked at.
const MOST: usize = 64;

impl Known {
    /// A look begins.
    pub(super) fn begin(&self) -> u64 {
        self.order.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What a look that began then has seen, unless a later one is known.
    pub(super) fn note(&self, begun: u64, space: &StoredSpace) {
        let mut seen = self.seen.lock();
        if seen.0 < begun {
            *seen = (begun, space.clone());
        }
    }

    /// What is known; nothing when another run of the server has to be noticed first.
    pub(super) fn view(&self, server: &str) -> Option<View> {
        let seen = self.seen.lock();
        let space = &seen.1;
        if space.server.as_deref() != Some(server) || space.sessions.len() > MOST {
            return None;
        }
        let living = space.sessions.iter().map(|one| {
            let (until, lease) = (one.session.expires_at, one.session.lease);
            Living { incarnation: one.incarnation.clone(), since: until.minus(lease * 2), until }
        });
        Some(View { from: space.grace_until, floor: space.floor, living: living.collect() })
    }

    /// Whether the ticket's session is known, and waits for reservations of this epoch.
    pub(super) fn welcomes(&self, ticket: &TicketId, epoch: u32) -> bool {
        let seen = self.seen.lock();
        let mut sessions = seen.1.sessions.iter();
        let own = sessions.find(|one| one.incarnation == ticket.incarnation);
        own.is_some_and(|own| own.session.epoch <= epoch)
    }
}

impl View {
    /// Until when the ticket's session lives.
    pub(super) fn until(&self, ticket: &TicketId) -> Option<ServerTime> {
        let own = self.living.iter().find(|one| one.incarnation == ticket.incarnation);
        own.map(|own| own.until)
    }
}
