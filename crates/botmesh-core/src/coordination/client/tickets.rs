use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::coordination::transition::TicketId;
use crate::coordination::{CoordinationKey, Grant, LeaseMoment, LossReason, SessionLease};
use crate::id::IncarnationId;

/// The tickets of this replica that are reserved, waiting or held, and who waits for them.
///
/// A ticket is entered before its reservation is sent, so that a wake-up that overtakes the
/// answer finds it. Every method is one critical section.
#[derive(Debug, Default)]
pub(super) struct TicketMap(Mutex<Tickets>);

#[derive(Debug, Default)]
struct Tickets {
    slots: BTreeMap<u64, Slot>,
    /// The waiting sequences of each key; the first one is the next to be granted.
    lines: HashMap<CoordinationKey, BTreeSet<u64>>,
    /// The session that is registered or being registered, for wake-ups of unknown tickets.
    session: Option<Arc<SessionLease>>,
}

#[derive(Debug)]
struct Slot {
    key: CoordinationKey,
    session: Arc<SessionLease>,
    state: State,
    waker: Option<Waker>,
    answered: bool,
    remaining: Duration,
    touched: LeaseMoment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Waiting,
    Granted(Grant),
    Held,
    Lost(LossReason),
}

/// What has become of a waiting ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Settled {
    Granted(Grant),
    Lost(LossReason),
}

/// What a grant met.
#[derive(Debug)]
pub(super) enum Delivery {
    /// The ticket waited for it.
    Delivered,
    /// The ticket had it already, or was lost.
    Repeated,
    /// Nobody has this ticket any more, but its session lives: the grant must be given back.
    Unclaimed(Arc<SessionLease>),
    /// Nobody has this ticket any more, and its session is gone.
    Foreign,
}

/// A ticket that was closed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) key: CoordinationKey,
    /// Its reservation may still be under way.
    pub(super) unanswered: bool,
    /// It was held, and not reported as lost.
    pub(super) held: bool,
}

/// A ticket that is still open.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) sequence: u64,
    pub(super) key: CoordinationKey,
    pub(super) held: bool,
}

impl Slot {
    fn settled(&mut self) -> Option<Settled> {
        match std::mem::replace(&mut self.state, State::Held) {
            State::Granted(grant) => Some(Settled::Granted(grant)),
            State::Held => Some(Settled::Lost(LossReason::Ended)),
            State::Waiting => {
                self.state = State::Waiting;
                None
            }
            State::Lost(reason) => {
                self.state = State::Lost(reason);
                Some(Settled::Lost(reason))
            }
        }
    }
}

impl TicketMap {
    /// Notes the session for which wake-ups may come.
    pub(super) fn expect(&self, session: Arc<SessionLease>) {
        self.0.lock().session = Some(session);
    }

    /// Enters a ticket before its reservation is sent.
    pub(super) fn open(
        &self,
        sequence: u64,
        key: CoordinationKey,
        session: Arc<SessionLease>,
        now: LeaseMoment,
    ) {
        let mut tickets = self.0.lock();
        tickets.lines.entry(key.clone()).or_default().insert(sequence);
        let (state, waker, remaining) = (State::Waiting, None, Duration::ZERO);
        let slot = Slot { key, session, state, waker, answered: false, remaining, touched: now };
        tickets.slots.insert(sequence, slot);
    }

    /// Notes that the reservation was answered: the ticket waits, for `remaining` at most before
    /// its holder may be found dead.
    pub(super) fn queued(&self, sequence: u64, remaining: Duration) {
        if let Some(slot) = self.0.lock().slots.get_mut(&sequence) {
            slot.answered = true;
            slot.remaining = remaining;
        }
    }

    /// Notes that the reservation was answered and left nothing behind.
    pub(super) fn answered(&self, sequence: u64) {
        self.queued(sequence, Duration::ZERO);
    }

    /// How long the holder of a waiting ticket's key lives at least, as last heard.
    pub(super) fn remaining(&self, sequence: u64) -> Duration {
        self.0.lock().slots.get(&sequence).map_or(Duration::ZERO, |slot| slot.remaining)
    }

    /// Delivers a grant, from an answer or from a wake-up, once.
    pub(super) fn grant(&self, ticket: &TicketId, grant: Grant) -> Delivery {
        let mut tickets = self.0.lock();
        let Tickets { slots, lines, session } = &mut *tickets;
        let slot = slots.get_mut(&ticket.sequence);
        match slot.filter(|slot| *slot.session.incarnation() == ticket.incarnation) {
            Some(slot) if slot.state == State::Waiting => {
                slot.state = State::Granted(grant);
                slot.answered = true;
                leave(lines, &slot.key, ticket.sequence);
                if let Some(waker) = slot.waker.take() {
                    drop(tickets);
                    waker.wake();
                }
                Delivery::Delivered
            }
            Some(_) => Delivery::Repeated,
            None => match session {
                Some(session) if *session.incarnation() == ticket.incarnation => {
                    Delivery::Unclaimed(Arc::clone(session))
                }
                _ => Delivery::Foreign,
            },
        }
    }

    /// Notes that a waiting ticket was skipped or forgotten by the backend.
    pub(super) fn lose(&self, sequence: u64, reason: LossReason) {
        let mut tickets = self.0.lock();
        let Tickets { slots, lines, .. } = &mut *tickets;
        let Some(slot) = slots.get_mut(&sequence) else { return };
        slot.answered = true;
        if slot.state == State::Waiting {
            slot.state = State::Lost(reason);
            leave(lines, &slot.key, sequence);
            if let Some(waker) = slot.waker.take() {
                drop(tickets);
                waker.wake();
            }
        }
    }

    /// Notes that a session has ended. Answers the keys that were held under it, which have not
    /// been reported as lost before.
    pub(super) fn lose_all(
        &self,
        incarnation: &IncarnationId,
        reason: LossReason,
    ) -> Vec<CoordinationKey> {
        let mut lost = Vec::new();
        let mut wakers = Vec::new();
        let mut tickets = self.0.lock();
        let Tickets { slots, lines, .. } = &mut *tickets;
        for (sequence, slot) in slots.iter_mut() {
            if slot.session.incarnation() != incarnation {
                continue;
            }
            match slot.state {
                State::Held => lost.push(slot.key.clone()),
                State::Lost(_) => continue,
                State::Waiting | State::Granted(_) => leave(lines, &slot.key, *sequence),
            }
            slot.state = State::Lost(reason);
            wakers.extend(slot.waker.take());
        }
        drop(tickets);
        wakers.into_iter().for_each(Waker::wake);
        lost
    }

    /// What has become of a ticket, if it does not wait any more. Takes the grant.
    pub(super) fn settled(&self, sequence: u64) -> Option<Settled> {
        match self.0.lock().slots.get_mut(&sequence) {
            Some(slot) => slot.settled(),
            None => Some(Settled::Lost(LossReason::Ended)),
        }
    }

    /// Waits until a ticket is granted, which takes the grant, or lost.
    pub(super) fn poll_settled(&self, sequence: u64, context: &mut Context<'_>) -> Poll<Settled> {
        let mut tickets = self.0.lock();
        let Some(slot) = tickets.slots.get_mut(&sequence) else {
            return Poll::Ready(Settled::Lost(LossReason::Ended));
        };
        match slot.settled() {
            Some(settled) => Poll::Ready(settled),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether no ticket of this replica is before this one in the queue of its key.
    pub(super) fn is_first(&self, sequence: u64) -> bool {
        let tickets = self.0.lock();
        let Some(slot) = tickets.slots.get(&sequence) else { return false };
        tickets.lines.get(&slot.key).and_then(BTreeSet::first) == Some(&sequence)
    }

    /// For how many keys tickets wait.
    pub(super) fn lines(&self) -> usize {
        self.0.lock().lines.len()
    }

    /// Whether a ticket is held.
    pub(super) fn is_held(&self, sequence: u64) -> bool {
        self.0.lock().slots.get(&sequence).is_some_and(|slot| slot.state == State::Held)
    }

    /// Removes a ticket that is given up. From now on a wake-up for it is answered by a release.
    pub(super) fn close(&self, sequence: u64) -> Option<Closed> {
        let mut tickets = self.0.lock();
        let slot = tickets.slots.remove(&sequence)?;
        leave(&mut tickets.lines, &slot.key, sequence);
        let held = slot.state == State::Held;
        Some(Closed { key: slot.key, unanswered: !slot.answered, held })
    }

    /// The open tickets of `incarnation`, the youngest first.
    pub(super) fn open_of(&self, incarnation: &IncarnationId) -> Vec<Open> {
        let tickets = self.0.lock();
        let open = tickets.slots.iter().rev();
        open.filter(|(_, slot)| slot.session.incarnation() == incarnation)
            .map(|(&sequence, slot)| Open {
                sequence,
                key: slot.key.clone(),
                held: matches!(slot.state, State::Held | State::Granted(_)),
            })
            .collect()
    }

    /// The held tickets whose record was not touched for `age`; they count as touched now.
    pub(super) fn touch_older(&self, age: Duration, now: LeaseMoment) -> Vec<Open> {
        let mut old = Vec::new();
        for (&sequence, slot) in &mut self.0.lock().slots {
            if slot.state == State::Held && now.since(slot.touched) >= age {
                slot.touched = now;
                old.push(Open { sequence, key: slot.key.clone(), held: true });
            }
        }
        old
    }

    /// How many tickets are open.
    pub(super) fn len(&self) -> usize {
        self.0.lock().slots.len()
    }
}

fn leave(
    lines: &mut HashMap<CoordinationKey, BTreeSet<u64>>,
    key: &CoordinationKey,
    sequence: u64,
) {
    if let Entry::Occupied(mut line) = lines.entry(key.clone()) {
        line.get_mut().remove(&sequence);
        if line.get().is_empty() {
            line.remove();
        }
    }
}

#[cfg(test)]
mod tests;
