//! Tickets whose reservation by the shortcut was lost on its way, and may yet arrive.

use std::collections::HashMap;

use botmesh_core::coordination::transition::TicketId;
use botmesh_core::id::IncarnationId;
use parking_lot::Mutex;

/// A reservation in one operation that got no answer may be executed at any later time, also after
/// its ticket was given up; the key would then be held by nobody. The operation can neither compare a
/// revision, for nothing was read before it, nor look at the session's epoch in another row. So
/// before such a ticket is given up it is noted in the row of the key, and never taken for it again.
/// What was decided on rows that were read needs no note: giving up changes the revision.
#[derive(Debug, Default)]
pub(super) struct Doubts(Mutex<HashMap<TicketId, Doubt>>);

/// How far giving up a ticket has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Its reservation is under way, or was lost.
    Open,
    /// The row of the key refuses it.
    Noted,
}

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
        let is_doubted = self.0.lock().insert(ticket.clone(), Doubt::Open).is_some();
        UnderWay { doubts: self, ticket, is_doubted }
    }

    /// Whether a reservation of this ticket may yet arrive, and whether that is noted.
    pub(super) fn of(&self, ticket: &TicketId) -> Option<Doubt> {
        self.0.lock().get(ticket).copied()
    }

    /// The row refuses it from now on. If giving it up fails after that, this need not be repeated.
    pub(super) fn note(&self, ticket: &TicketId) {
        self.0.lock().insert(ticket.clone(), Doubt::Noted);
    }

    /// It was given up, and noted in the row.
    pub(super) fn settle(&self, ticket: &TicketId) {
        self.0.lock().remove(ticket);
    }

    /// Another incarnation begins: what those of before hold goes when their sessions end.
    pub(super) fn begin_anew(&self, incarnation: &IncarnationId) {
        self.0.lock().retain(|ticket, _| ticket.incarnation == *incarnation);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// C7: what was lost stays in doubt until it was given up, and its note is written once.
    #[test]
    fn a_lost_reservation_stays_in_doubt_and_an_answered_one_leaves_none() {
        let doubts = Doubts::default();
        let incarnation = IncarnationId::new("a#1").unwrap();
        let ticket = |sequence| TicketId { incarnation: incarnation.clone(), sequence };
        let (lost, answered) = (ticket(1), ticket(2));
        doubts.begin(&answered).answered();
        assert_eq!(doubts.of(&answered), None);
        let _lost = doubts.begin(&lost);
        assert_eq!(doubts.of(&lost), Some(Doubt::Open));
        // A repetition that is answered does not take back the one that was lost.
        doubts.begin(&lost).answered();
        assert_eq!(doubts.of(&lost), Some(Doubt::Open));
        doubts.note(&lost);
        assert_eq!(doubts.of(&lost), Some(Doubt::Noted));
        doubts.settle(&lost);
        assert_eq!(doubts.of(&lost), None);
        doubts.note(&lost);
        doubts.begin_anew(&IncarnationId::new("b#1").unwrap());
        assert_eq!(doubts.of(&lost), None);
    }
}
