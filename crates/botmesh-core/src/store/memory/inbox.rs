use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::checkpoints::Checkpoints;
use super::sharded::{Series, shrink};
use super::{ChatKey, Fence, Moment, Swap, after};
use crate::id::{MessageId, Position};
use crate::store::{
    Admission, Begun, CheckpointChange, Commit, Committed, DeadLetter, InboxRecord, NewRecord,
    Postponement, Retention,
};

/// One shard of the inbox. A record is in `rows` until it is forgotten, and in the one index that
/// belongs to its state; all positions of a shard come from one series, so they never repeat.
#[derive(Default)]
pub(super) struct Inbox {
    rows: HashMap<Place, Row>,
    ids: HashMap<(ChatKey, MessageId), Position>,
    pending: BTreeSet<Place>,
    /// When the leases of pending records end.
    leases: BTreeSet<(Moment, Place)>,
    /// When claims end.
    claims: BTreeSet<(Moment, Place)>,
    done: BTreeSet<(Moment, Place)>,
    dead: BTreeMap<Place, Moment>,
    positions: Series,
}

type Place = (ChatKey, Position);

struct Row {
    message: Option<MessageId>,
    /// None for a claim, and when it is done.
    body: Option<Box<str>>,
    state: State,
    fence: Option<Fence>,
    attempts: u32,
    lease_ends: Moment,
    due_at: Moment,
    sends: Option<Box<str>>,
    error: Option<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Claimed,
    Pending,
    Done,
    Dead,
}

impl Inbox {
    pub(super) fn admit(&mut self, record: NewRecord<'_>, now: Moment) -> Admission {
        let lease_ends = after(now, record.lease);
        let id = record.message.map(|message| (record.chat.clone(), message.clone()));
        if let Some(position) = id.as_ref().and_then(|id| self.ids.get(id)).copied() {
            let place = (record.chat.clone(), position);
            if self.rows.get(&place).is_none_or(|row| !row.is_ended_claim(now)) {
                return Admission::Known;
            }
            self.remove(&place);
        }
        let waiting = self.of_chat(record.chat).count();
        if waiting >= record.most {
            return Admission::Full { waiting };
        }
        let position = Position::new(self.positions.next(now));
        let place = (record.chat.clone(), position);
        let state = if record.body.is_some() { State::Pending } else { State::Claimed };
        let row = Row {
            message: record.message.cloned(),
            body: record.body.map(Into::into),
            state,
            fence: None,
            attempts: 0,
            lease_ends,
            // Whoever begins it may have looked at the clock before this call did.
            due_at: Moment::MIN,
            sends: None,
            error: None,
        };
        self.ids.extend(id.map(|id| (id, position)));
        self.insert(place, row);
        Admission::New { position, is_behind: waiting > 0 }
    }

    pub(super) fn begin(
        &mut self,
        chat: &ChatKey,
        fence: Fence,
        lease_ends: Moment,
        now: Moment,
    ) -> Begun {
        let mut pending = self.of_chat(chat);
        let Some(place) = pending.next().cloned() else { return Begun::Nothing };
        let has_more = pending.next().is_some();
        drop(pending);
        let Some(row) = self.rows.get_mut(&place) else { return Begun::Nothing };
        if let Some(higher) = row.fence.filter(|begun| *begun > fence) {
            return Begun::Refused(higher);
        }
        if row.due_at > now {
            return Begun::NotYet(Duration::from_micros(row.due_at - now));
        }
        self.leases.remove(&(row.lease_ends, place.clone()));
        row.fence = Some(fence);
        row.attempts = row.attempts.saturating_add(1);
        row.lease_ends = lease_ends;
        let record = InboxRecord {
            position: place.1,
            body: row.body.as_deref().unwrap_or_default().to_owned(),
            attempts: row.attempts,
            sends: row.sends.as_deref().map(str::to_owned),
            error: row.error.as_deref().map(str::to_owned),
            has_more,
        };
        self.leases.insert((lease_ends, place));
        Begun::Record(record)
    }

    /// Ends a record; the checkpoints are those of the chat's shard.
    pub(super) fn commit(
        &mut self,
        commit: Commit<'_>,
        checkpoints: &mut Checkpoints,
        now: Moment,
    ) -> Committed {
        let Commit { chat, position, fence, checkpoint } = commit;
        let place = (chat.clone(), position);
        if self.open(&place, fence).is_none() {
            return Committed::Refused;
        }
        let swap = match checkpoint {
            CheckpointChange::Nothing => None,
            CheckpointChange::Set { write, expected } => {
                Some(checkpoints.set_if(chat, write, expected, fence, now))
            }
            CheckpointChange::Clear { expected } => {
                Some(checkpoints.clear_if(chat, expected, fence, now))
            }
        };
        let revision = match (swap, checkpoint) {
            (Some(Swap::Refused), _) => return Committed::Refused,
            (Some(Swap::Applied(revision)), CheckpointChange::Set { .. }) => Some(revision),
            _ => None,
        };
        self.end(&place, State::Done, now);
        Committed::Applied(revision)
    }

    pub(super) fn note_sends(&mut self, place: &Place, fence: Fence, sends: &str) -> bool {
        let Some(row) = self.pending(place, fence) else { return false };
        row.sends = Some(sends.into());
        true
    }

    pub(super) fn postpone(
        &mut self,
        place: &Place,
        fence: Fence,
        postponement: Postponement<'_>,
        now: Moment,
    ) -> bool {
        let Some(row) = self.pending(place, fence) else { return false };
        let before = row.lease_ends;
        row.due_at = after(now, postponement.retry_in);
        row.lease_ends = row.due_at;
        row.attempts = postponement.attempts;
        row.error = Some(postponement.error.into());
        if let Some(sends) = postponement.sends {
            row.sends = Some(sends.into());
        }
        let after = row.lease_ends;
        self.leases.remove(&(before, place.clone()));
        self.leases.insert((after, place.clone()));
        true
    }

    pub(super) fn bury(&mut self, place: &Place, fence: Fence, error: &str, now: Moment) -> bool {
        let Some(row) = self.pending(place, fence) else { return false };
        row.error = Some(error.into());
        self.end(place, State::Dead, now);
        true
    }

    pub(super) fn release(&mut self, place: &Place, now: Moment) {
        match self.rows.get_mut(place) {
            Some(row) if row.state == State::Claimed => self.remove(place),
            Some(row) if row.state == State::Pending => {
                self.leases.remove(&(row.lease_ends, place.clone()));
                row.lease_ends = now;
                self.leases.insert((now, place.clone()));
            }
            _ => {}
        }
    }

    /// Adds the chats of this shard whose leases have ended, with the moments at which they did.
    pub(super) fn waiting(&self, now: Moment, found: &mut Vec<(Moment, ChatKey)>) {
        let ended = self.leases.iter().take_while(|(moment, _)| *moment <= now);
        found.extend(ended.map(|(moment, (chat, _))| (*moment, chat.clone())));
    }

    /// Lets the leases of the chat that have ended begin anew.
    pub(super) fn lease_again(&mut self, chat: &ChatKey, lease_ends: Moment, now: Moment) {
        let places: Vec<Place> = self.of_chat(chat).cloned().collect();
        for place in places {
            if let Some(row) = self.rows.get_mut(&place).filter(|row| row.lease_ends <= now) {
                self.leases.remove(&(row.lease_ends, place.clone()));
                row.lease_ends = lease_ends;
                self.leases.insert((lease_ends, place));
            }
        }
    }

    pub(super) fn dead_letters(&self, now: Moment, found: &mut Vec<DeadLetter>) {
        found.extend(self.dead.iter().filter_map(|(place, since)| {
            let row = self.rows.get(place)?;
            Some(DeadLetter {
                chat: place.0.clone(),
                position: place.1,
                body: row.body.as_deref().unwrap_or_default().to_owned(),
                attempts: row.attempts,
                error: row.error.as_deref().unwrap_or_default().to_owned(),
                age: Duration::from_micros(now.saturating_sub(*since)),
            })
        }));
    }

    pub(super) fn revive(&mut self, place: &Place, now: Moment) -> bool {
        if self.dead.remove(place).is_none() {
            return false;
        }
        let Some(mut row) = self.rows.remove(place) else { return false };
        row.state = State::Pending;
        row.attempts = 0;
        (row.due_at, row.lease_ends) = (now, now);
        self.insert(place.clone(), row);
        true
    }

    pub(super) fn forget(&mut self, retention: Retention, limit: usize, now: Moment) -> usize {
        let past = |moment: Moment, kept: Duration| after(moment, kept) <= now;
        let done = self.done.iter().take_while(|(moment, _)| past(*moment, retention.done));
        let claims = self.claims.iter().take_while(|(moment, _)| *moment <= now);
        let dead = self.dead.iter().filter(|(_, moment)| past(**moment, retention.dead));
        let places = done.chain(claims).map(|(_, place)| place).chain(dead.map(|(place, _)| place));
        let places: Vec<Place> = places.take(limit).cloned().collect();
        for place in &places {
            self.remove(place);
        }
        shrink(&mut self.rows);
        shrink(&mut self.ids);
        places.len()
    }

    /// The pending records of a chat in their order.
    fn of_chat(&self, chat: &ChatKey) -> impl Iterator<Item = &Place> {
        let first = (chat.clone(), Position::new(0));
        let chat = chat.clone();
        self.pending.range(first..).take_while(move |(of, _)| *of == chat)
    }

    /// The record, if it has not ended and `fence` may act on it.
    fn open(&mut self, place: &Place, fence: Fence) -> Option<&mut Row> {
        let row = self.rows.get_mut(place)?;
        let is_open = matches!(row.state, State::Pending | State::Claimed) && row.admits(fence);
        is_open.then_some(row)
    }

    /// As [`open`](Self::open), but for claims.
    fn pending(&mut self, place: &Place, fence: Fence) -> Option<&mut Row> {
        self.open(place, fence).filter(|row| row.state == State::Pending)
    }

    fn end(&mut self, place: &Place, state: State, now: Moment) {
        let Some(mut row) = self.take(place) else { return };
        row.state = state;
        match state {
            State::Dead => {
                self.dead.insert(place.clone(), now);
            }
            // Without an id there is nothing to be known again.
            _ if row.message.is_none() => return,
            _ => {
                row.body = None;
                row.sends = None;
                self.done.insert((now, place.clone()));
            }
        }
        row.lease_ends = now;
        self.rows.insert(place.clone(), row);
    }

    fn insert(&mut self, place: Place, row: Row) {
        match row.state {
            State::Claimed => self.claims.insert((row.lease_ends, place.clone())),
            _ => {
                self.pending.insert(place.clone());
                self.leases.insert((row.lease_ends, place.clone()))
            }
        };
        self.rows.insert(place, row);
    }

    /// Takes a record out of everything but the ids.
    fn take(&mut self, place: &Place) -> Option<Row> {
        let row = self.rows.remove(place)?;
        self.pending.remove(place);
        self.dead.remove(place);
        let entry = (row.lease_ends, place.clone());
        for index in [&mut self.leases, &mut self.claims, &mut self.done] {
            index.remove(&entry);
        }
        Some(row)
    }

    fn remove(&mut self, place: &Place) {
        if let Some(message) = self.take(place).and_then(|row| row.message) {
            self.ids.remove(&(place.0.clone(), message));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len().max(self.ids.len()).max(self.leases.len()).max(self.done.len())
    }
}

impl Row {
    fn admits(&self, fence: Fence) -> bool {
        self.fence.is_none_or(|begun| begun <= fence)
    }

    fn is_ended_claim(&self, now: Moment) -> bool {
        self.state == State::Claimed && self.lease_ends <= now
    }
}
