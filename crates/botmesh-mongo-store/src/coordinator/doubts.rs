//! Tickets whose reservation was lost on its way, and may yet arrive.

use std::collections::HashSet;

use botmesh_core::coordination::transition::TicketId;
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;

/// A reservation that got no answer may be executed at any later time, also after its ticket was
/// given up; the key would then be held by nobody. So before such a ticket is given up it is noted
/// in the row of the key, and never taken for it again.
#[derive(Debug, Default)]
pub(super) struct Doubts(Mutex<HashSet<TicketId>>);

/// A reservation that is under way. Dropped without an answer, it leaves a doubt.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    doubts: &'a Doubts,
    ticket: &'a TicketId,
    /// Whether an earlier attempt has left one already.
    is_doubted: bool,
}

impl Doubts {
    /// A reservation begins.
    pub(super) fn begin<'a>(&'a self, ticket: &'a TicketId) -> UnderWay<'a> {
        let is_doubted = !self.0.lock().insert(ticket.clone());
        UnderWay { doubts: self, ticket, is_doubted }
    }

    /// Whether a reservation of this ticket may yet arrive.
    pub(super) fn contains(&self, ticket: &TicketId) -> bool {
        self.0.lock().contains(ticket)
    }

    /// It was given up, and noted in the row.
    pub(super) fn settle(&self, ticket: &TicketId) {
        self.0.lock().remove(ticket);
    }

    /// Another incarnation begins: what those of before hold goes when their sessions end.
    pub(super) fn begin_anew(&self, incarnation: &IncarnationId) {
        self.0.lock().retain(|ticket| ticket.incarnation == *incarnation);
    }
}

impl UnderWay<'_> {
    /// It was answered, or surely not executed.
    pub(super) fn answered(self) {
        if !self.is_doubted {
            self.doubts.settle(self.ticket);
        }
    }
}
