use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::operation::Reply;
use super::{At, Mutation, ServerTime};
use crate::coordination::session::SessionLease;
use crate::id::{Fence, IncarnationId};

/// The sessions of one coordination space and what they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SessionTable {
    pub(super) sessions: BTreeMap<IncarnationId, Session>,
    /// No fence below is granted any more, whatever records were forgotten.
    pub(super) floor: u64,
    pub(super) grace_until: ServerTime,
    /// The run of the server that this table knows; none when it was just made or wiped.
    pub(super) server: Option<Arc<str>>,
    /// Since when; none for a table that is known to be new.
    pub(super) server_since: Option<ServerTime>,
    /// When a heartbeat last showed that the clock had been set forward.
    pub(super) jumped_at: ServerTime,
}

/// One session: the lifetime of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    /// When it ends unless it is renewed.
    pub expires_at: ServerTime,
    /// How far each renewal extends it. Its owner chooses; others go by `expires_at`.
    #[serde(with = "micros")]
    pub lease: Duration,
    /// When it was opened.
    pub registered_at: ServerTime,
    /// Reservations of an earlier epoch are refused.
    pub epoch: u32,
}

/// What one session may think of another.
pub(super) enum Verdict {
    /// It lives, or may live: nothing is taken from it for at least this long.
    Alive(Duration),
    /// It is gone.
    Dead,
}

impl SessionTable {
    pub(super) fn founded(server: &str) -> Self {
        Self { server: Some(server.into()), ..Self::default() }
    }

    /// The session of `incarnation`, expired or not.
    #[must_use]
    pub fn get(&self, incarnation: &IncarnationId) -> Option<&Session> {
        self.sessions.get(incarnation)
    }

    /// All sessions, the expired ones included that nobody has buried yet.
    pub fn iter(&self) -> impl Iterator<Item = (&IncarnationId, &Session)> {
        self.sessions.iter()
    }

    /// How long nothing is granted; zero outside of grace.
    #[must_use]
    pub const fn grace_left(&self, now: ServerTime) -> Duration {
        self.grace_until.since(now)
    }

    /// The lowest fence that the next grant at `now` may have, given the last one of its key.
    pub(super) fn next_fence(&self, last: u64, at: &At<'_>) -> u64 {
        if at.breaks(Mutation::FenceNotRaised) && last > 0 {
            return last;
        }
        (last + 1).max(at.now.as_micros()).max(self.floor + 1)
    }

    pub(super) fn raise_floor(&mut self, fence: Fence) {
        self.floor = self.floor.max(fence.get());
    }

    /// Notices that the server is another one than before, or that this table was wiped. Whoever
    /// was granted something by the server before may believe in it until its lease ends, which
    /// may be longer than the caller's.
    pub(super) fn observe(&mut self, at: &At<'_>) {
        if self.server.as_deref() == Some(at.server) {
            return;
        }
        self.server = Some(at.server.into());
        self.server_since = Some(at.now);
        self.floor = self.floor.max(at.now.as_micros());
        let known = self.sessions.values().map(|session| session.lease).max();
        self.extend_grace(at.limits.grace.max(known.unwrap_or_default()), at);
    }

    /// Grants nothing until the server has run for `grace`.
    fn extend_grace(&mut self, grace: Duration, at: &At<'_>) {
        let needed = !at.limits.grace.is_zero() && !at.breaks(Mutation::NoGrace);
        if let Some(since) = self.server_since.filter(|_| needed) {
            self.grace_until = self.grace_until.max(since.plus(grace));
        }
    }

    pub(super) fn register(
        &mut self,
        incarnation: &IncarnationId,
        lease: Duration,
        at: &At<'_>,
    ) -> Reply {
        if self.sessions.contains_key(incarnation) {
            return Reply::Duplicate;
        }
        let session =
            Session { expires_at: at.now.plus(lease), lease, registered_at: at.now, epoch: 0 };
        self.sessions.insert(incarnation.clone(), session);
        self.floor = self.floor.max(at.now.as_micros());
        // The server before may have known others with such a lease, which are cut off.
        self.extend_grace(lease, at);
        let living = self.sessions.values().filter(|session| session.expires_at > at.now);
        let (shortest, longest) = living.fold((lease, lease), |(shortest, longest), session| {
            (shortest.min(session.lease), longest.max(session.lease))
        });
        Reply::Registered { shortest, longest }
    }

    pub(super) fn heartbeat(
        &mut self,
        incarnation: &IncarnationId,
        epoch: u32,
        age: Duration,
        at: &At<'_>,
    ) -> Reply {
        let now = at.now;
        self.follow_a_clock_that_was_set_back(now);
        let Some(session) = self.sessions.get_mut(incarnation) else { return Reply::Expired };
        let expired = session.expires_at <= now && !at.breaks(Mutation::ReviveTheExpired);
        if expired && age >= session.lease / 2 {
            self.sessions.remove(incarnation);
            return Reply::Expired;
        }
        // More time has passed here than for the caller, by more than local deadlines keep in
        // reserve: this clock was set forward, for all sessions. That the caller has expired
        // although it cannot have, by its own clock, is the same.
        let lead = now.since(session.confirmed_at()).saturating_sub(age);
        let jumped = expired || lead > SessionLease::margin(session.lease);
        session.expires_at = now.plus(session.lease);
        // A clock that was set back would make it a newcomer for as long.
        session.registered_at = session.registered_at.min(now);
        session.epoch = session.epoch.max(epoch);
        self.floor = self.floor.max(now.as_micros());
        let reply = match jumped && !at.breaks(Mutation::TrustTheClock) {
            true => {
                self.jumped_at = now;
                Reply::Jumped
            }
            false => Reply::Renewed,
        };
        self.bury_the_long_dead(incarnation, at);
        reply
    }

    /// What lies in the future by a clock that was set back began now.
    fn follow_a_clock_that_was_set_back(&mut self, now: ServerTime) {
        if let Some(since) = self.server_since.filter(|since| *since > now) {
            self.grace_until = now.plus(self.grace_until.since(since));
            self.server_since = Some(now);
        }
        self.jumped_at = self.jumped_at.min(now);
    }

    pub(super) fn stop(&mut self, incarnation: &IncarnationId) -> Reply {
        self.sessions.remove(incarnation);
        Reply::Stopped
    }

    /// The session of a caller that wants something granted; none when it has ended.
    pub(super) fn caller(&self, incarnation: &IncarnationId, now: ServerTime) -> Option<&Session> {
        self.sessions.get(incarnation).filter(|session| session.expires_at > now)
    }

    /// Judges whether `other` is dead in the eyes of `caller`, and buries it then: a session that
    /// was once taken for dead has no way back.
    pub(super) fn judge(
        &mut self,
        caller: &IncarnationId,
        other: &IncarnationId,
        at: &At<'_>,
    ) -> Verdict {
        let now = at.now;
        let Some(session) = self.sessions.get_mut(other) else { return Verdict::Dead };
        // Written before the clock was set back: no renewal can reach so far.
        if session.expires_at.since(now) > session.lease * 2 {
            session.expires_at = now.plus(session.lease);
        }
        let remaining = session.expires_at.since(now);
        if !remaining.is_zero() {
            return Verdict::Alive(remaining);
        }
        let session = session.clone();
        match self.doubt(caller, &session, at) {
            Some(doubt) => Verdict::Alive(doubt),
            None => {
                self.sessions.remove(other);
                Verdict::Dead
            }
        }
    }

    /// Why `caller` may not take `other`, which looks expired, for dead, as the time after which it
    /// may; zero when it only has to renew its own session before.
    ///
    /// After this clock was set forward all sessions look expired that were not renewed since.
    /// Only clocks of callers show that, with their heartbeats. So what counts is the moment of the
    /// caller's last heartbeat, and that no jump was seen by it for as long as the other's lease.
    fn doubt(&self, caller: &IncarnationId, other: &Session, at: &At<'_>) -> Option<Duration> {
        let now = at.now;
        let Some(own) = self.sessions.get(caller) else { return Some(other.lease) };
        let steady = own.registered_at.max(self.jumped_at).plus(other.lease);
        let confirmed = own.confirmed_at();
        if steady > now {
            return Some(steady.since(now));
        }
        // Confirmed in the future: the clock was set back since.
        let known = (other.expires_at.max(steady)..=now).contains(&confirmed);
        (!known && !at.breaks(Mutation::BuryUnconfirmed)).then_some(Duration::ZERO)
    }

    /// Removes what expired more than a lease ago. To be absent is to be dead, so this only keeps
    /// the table small.
    fn bury_the_long_dead(&mut self, caller: &IncarnationId, at: &At<'_>) {
        let long_dead: Vec<IncarnationId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.expires_at.plus(session.lease) <= at.now)
            .filter(|(_, session)| self.doubt(caller, session, at).is_none())
            .map(|(incarnation, _)| incarnation.clone())
            .collect();
        for incarnation in long_dead {
            self.sessions.remove(&incarnation);
        }
    }
}

impl Session {
    /// When it was renewed last, or opened.
    fn confirmed_at(&self) -> ServerTime {
        self.expires_at.minus(self.lease)
    }
}

/// A duration as microseconds, which every database can hold and compute with.
mod micros {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}
