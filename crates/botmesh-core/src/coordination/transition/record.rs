use std::collections::VecDeque;
use std::time::Duration;

use super::operation::{Outcome, Reply, TicketId, Wakeup};
use super::session::{SessionTable, Verdict};
use super::{At, Mutation, ServerTime};
use crate::coordination::hold::{Grant, PreviousHolder};
use crate::coordination::key::CoordinationKey;
use crate::id::{Fence, IncarnationId};

/// The state of one key: who holds it, who waits, who held it last. The default is the absence of
/// a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TurnRecord {
    pub(super) holder: Option<TicketId>,
    /// Of the present or the last grant; zero when there was none.
    pub(super) fence: u64,
    /// While held: who held it before. While free: who held it last.
    pub(super) previous: Option<PreviousHolder>,
    pub(super) queue: VecDeque<TicketId>,
    /// A record that nobody touches until then is absent.
    pub(super) expires_at: ServerTime,
}

/// How a ticket asks for a key.
#[derive(Clone, Copy)]
pub(super) enum Asking {
    /// Queue it, unless it is there already. Carries the caller's epoch.
    Reserve(u32),
    /// Grant now or not at all. Carries the caller's epoch.
    Attempt(u32),
    /// It is there already.
    Poll,
}

impl TurnRecord {
    /// The ticket that holds the key.
    #[must_use]
    pub const fn holder(&self) -> Option<&TicketId> {
        self.holder.as_ref()
    }

    /// The fence of the present or the last grant; zero when there was none.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        Fence::new(self.fence)
    }

    /// While held: who held it before. While free: who held it last.
    #[must_use]
    pub const fn previous(&self) -> Option<&PreviousHolder> {
        self.previous.as_ref()
    }

    /// The waiting tickets, the next one first.
    pub fn queue(&self) -> impl ExactSizeIterator<Item = &TicketId> {
        self.queue.iter()
    }

    /// Whether it is free and nobody waits: only the memory of the last holder is left.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty()
    }

    pub(super) fn is_absent(&self) -> bool {
        self.is_idle() && self.fence == 0
    }

    pub(super) fn expire(&mut self, at: &At<'_>) {
        if self.expires_at <= at.now {
            *self = Self::default();
        }
    }

    pub(super) fn ask(
        &mut self,
        sessions: &mut SessionTable,
        key: &CoordinationKey,
        ticket: &TicketId,
        asking: Asking,
        at: &At<'_>,
    ) -> Outcome {
        let Some(session) = sessions.caller(&ticket.incarnation, at.now) else {
            return Reply::NoSession.into();
        };
        if let Asking::Reserve(epoch) | Asking::Attempt(epoch) = asking
            && epoch < session.epoch
            && !at.breaks(Mutation::AcceptStale)
        {
            return Reply::Stale.into();
        }
        if self.holder.as_ref() == Some(ticket) {
            return Reply::Granted(self.grant()).into();
        }
        let grace = sessions.grace_left(at.now);
        if self.is_idle() {
            match asking {
                Asking::Poll => return Reply::Superseded.into(),
                Asking::Attempt(_) if !grace.is_zero() => {
                    return Reply::Busy { remaining: grace }.into();
                }
                Asking::Reserve(_) | Asking::Attempt(_) if grace.is_zero() => {
                    self.grant_to(ticket.clone(), sessions, at);
                    return Reply::Granted(self.grant()).into();
                }
                _ => {}
            }
        }
        if let Some(refusal) = self.enter(ticket, asking, at) {
            return refusal.into();
        }
        self.expires_at = at.now.plus(at.limits.held);
        if !grace.is_zero() {
            return self.wait(ticket, asking, grace).into();
        }
        if let Some(holder) = self.holder.clone() {
            let verdict = sessions.judge(&ticket.incarnation, &holder.incarnation, at);
            if let Verdict::Alive(remaining) = verdict
                && !at.breaks(Mutation::TakeFromTheLiving)
            {
                let reply = self.wait(ticket, asking, remaining);
                // A server that took over, or that was restored, may have forgotten that the key
                // was released. Whoever is told of a grant that it does not have gives it back.
                let wakeup = matches!(asking, Asking::Poll).then(|| Wakeup {
                    ticket: holder,
                    key: key.clone(),
                    grant: self.grant(),
                });
                return Outcome { reply, wakeup };
            }
            self.vacate(holder.incarnation);
        }
        self.hand_over(sessions, key, ticket, asking, at)
    }

    /// Makes sure that the ticket waits, unless it only attempts; otherwise says why it cannot.
    fn enter(&mut self, ticket: &TicketId, asking: Asking, at: &At<'_>) -> Option<Reply> {
        let waits = self.queue.contains(ticket);
        match asking {
            Asking::Poll if !waits => Some(Reply::Superseded),
            Asking::Reserve(_) if !waits || at.breaks(Mutation::RepeatQueuesAgain) => {
                let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
                if waiting >= at.limits.max_queue {
                    return Some(Reply::Full { waiting });
                }
                self.queue.push_back(ticket.clone());
                None
            }
            _ => None,
        }
    }

    /// Grants the key, which nobody holds, to the next in line.
    fn hand_over(
        &mut self,
        sessions: &mut SessionTable,
        key: &CoordinationKey,
        ticket: &TicketId,
        asking: Asking,
        at: &At<'_>,
    ) -> Outcome {
        match self.next(sessions, &ticket.incarnation, at) {
            Some(next) if next == *ticket => {
                self.grant_to(next, sessions, at);
                Reply::Granted(self.grant()).into()
            }
            Some(next) => {
                let lease = sessions.get(&next.incarnation).map_or(Duration::ZERO, |s| s.lease);
                self.grant_to(next.clone(), sessions, at);
                let wakeup = Wakeup { ticket: next, key: key.clone(), grant: self.grant() };
                Outcome { reply: self.wait(ticket, asking, lease), wakeup: Some(wakeup) }
            }
            // Nobody waited before an attempt.
            None if matches!(asking, Asking::Attempt(_)) => {
                self.grant_to(ticket.clone(), sessions, at);
                Reply::Granted(self.grant()).into()
            }
            None => self.wait(ticket, asking, Duration::ZERO).into(),
        }
    }

    pub(super) fn release(
        &mut self,
        sessions: &mut SessionTable,
        key: &CoordinationKey,
        ticket: &TicketId,
        at: &At<'_>,
    ) -> Outcome {
        let holds = self.holder.as_ref() == Some(ticket);
        let mutant = at.breaks(Mutation::ReleaseForAnybody) && self.holder.is_some();
        if !holds && !mutant {
            let before = self.queue.len();
            self.queue.retain(|waiting| waiting != ticket);
            let waited = self.queue.len() < before;
            return if waited { Reply::Cancelled } else { Reply::NotHolder }.into();
        }
        self.vacate(ticket.incarnation.clone());
        self.expires_at = at.now.plus(at.limits.idle);
        if !sessions.grace_left(at.now).is_zero() {
            // Whoever waits polls when grace is over.
            return Reply::Released { next: None }.into();
        }
        match self.next(sessions, &ticket.incarnation, at) {
            None => Reply::Released { next: None }.into(),
            Some(next) => {
                self.grant_to(next.clone(), sessions, at);
                let grant = self.grant();
                if next.incarnation == ticket.incarnation {
                    return Reply::Released { next: Some((next.sequence, grant)) }.into();
                }
                let wakeup = Some(Wakeup { ticket: next, key: key.clone(), grant });
                Outcome { reply: Reply::Released { next: None }, wakeup }
            }
        }
    }

    pub(super) fn touch(&mut self, ticket: &TicketId, at: &At<'_>) -> Reply {
        if self.holder.as_ref() != Some(ticket) {
            return Reply::NotHolder;
        }
        self.expires_at = at.now.plus(at.limits.held);
        Reply::Touched
    }

    /// Takes the next ticket whose session may live, and skips those of the dead.
    fn next(
        &mut self,
        sessions: &mut SessionTable,
        caller: &IncarnationId,
        at: &At<'_>,
    ) -> Option<TicketId> {
        if at.breaks(Mutation::LastInFirstOut) {
            return self.queue.pop_back();
        }
        while let Some(ticket) = self.queue.pop_front() {
            let verdict = sessions.judge(caller, &ticket.incarnation, at);
            if matches!(verdict, Verdict::Alive(_)) || at.breaks(Mutation::GrantToTheDead) {
                return Some(ticket);
            }
            if at.breaks(Mutation::StopAtTheDead) {
                self.queue.push_front(ticket);
                return None;
            }
        }
        None
    }

    fn vacate(&mut self, incarnation: IncarnationId) {
        self.holder = None;
        self.previous = Some(PreviousHolder { incarnation, fence: self.fence() });
    }

    fn grant_to(&mut self, ticket: TicketId, sessions: &SessionTable, at: &At<'_>) {
        self.fence = sessions.next_fence(self.fence, at);
        self.holder = Some(ticket);
        self.expires_at = at.now.plus(at.limits.held);
    }

    fn grant(&self) -> Grant {
        Grant { fence: self.fence(), previous: self.previous.clone() }
    }

    fn wait(&self, ticket: &TicketId, asking: Asking, remaining: Duration) -> Reply {
        if matches!(asking, Asking::Attempt(_)) {
            return Reply::Busy { remaining };
        }
        let before = self.queue.iter().take_while(|waiting| *waiting != ticket).count();
        let ahead = before + usize::from(self.holder.is_some());
        Reply::Queued { ahead: u32::try_from(ahead).unwrap_or(u32::MAX), remaining }
    }
}
