use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::operation::Reply;
use super::{At, Mutation, ServerTime};
use crate::id::{Fence, IncarnationId};

/// The sessions of one coordination space and what they share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SessionTable {
    sessions: BTreeMap<IncarnationId, Session>,
    /// No fence below is granted any more, whatever records were forgotten.
    floor: u64,
    grace_until: ServerTime,
    /// The run of the server that this table knows; none when it was just made or wiped.
    server: Option<Arc<str>>,
}

/// One session: the lifetime of one incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    /// When it ends unless it is renewed.
    pub expires_at: ServerTime,
    /// How far each renewal extends it. Its owner chooses; others go by `expires_at`.
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
    /// was granted something by the server before may believe in it until its lease ends.
    pub(super) fn observe(&mut self, at: &At<'_>) {
        if self.server.as_deref() == Some(at.server) {
            return;
        }
        self.server = Some(at.server.into());
        self.floor = self.floor.max(at.now.as_micros());
        if !at.breaks(Mutation::NoGrace) {
            self.grace_until = self.grace_until.max(at.now.plus(at.limits.grace));
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
        Reply::Registered
    }

    pub(super) fn heartbeat(
        &mut self,
        incarnation: &IncarnationId,
        epoch: u32,
        age: Duration,
        at: &At<'_>,
    ) -> Reply {
        let now = at.now;
        let Some(session) = self.sessions.get(incarnation) else { return Reply::Expired };
        let mut reply = Reply::Renewed;
        if session.expires_at <= now && !at.breaks(Mutation::ReviveTheExpired) {
            if age >= session.lease / 2 {
                self.sessions.remove(incarnation);
                return Reply::Expired;
            }
            // By the caller's own clock it cannot have expired: the backend's clock has jumped,
            // for all sessions. Nothing is granted until each had the time to renew.
            self.grace_until = self.grace_until.max(now.plus(session.lease));
            reply = Reply::Jumped;
        }
        self.bury_the_long_dead(incarnation, now);
        if let Some(session) = self.sessions.get_mut(incarnation) {
            session.expires_at = now.plus(session.lease);
            // A clock that was set back would make it a newcomer for as long.
            session.registered_at = session.registered_at.min(now);
            session.epoch = session.epoch.max(epoch);
        }
        self.floor = self.floor.max(now.as_micros());
        reply
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
        now: ServerTime,
    ) -> Verdict {
        let Some(session) = self.sessions.get_mut(other) else { return Verdict::Dead };
        // Written before the clock was set back: no renewal can reach so far.
        if session.expires_at.since(now) > session.lease * 2 {
            session.expires_at = now.plus(session.lease);
        }
        let remaining = session.expires_at.since(now);
        if !remaining.is_zero() {
            return Verdict::Alive(remaining);
        }
        let lease = session.lease;
        match self.doubt(caller, lease, now) {
            Some(doubt) => Verdict::Alive(doubt),
            None => {
                self.sessions.remove(other);
                Verdict::Dead
            }
        }
    }

    /// Why `caller` may not take a session with this `lease` for dead, as the time after which it
    /// may. After the backend's clock jumped forward all sessions look expired; a caller notices
    /// only by its own. So it must have been renewed lately, and be older than the other's lease.
    fn doubt(&self, caller: &IncarnationId, lease: Duration, now: ServerTime) -> Option<Duration> {
        let Some(own) = self.sessions.get(caller) else { return Some(lease) };
        let newcomer = own.registered_at.plus(lease).since(now);
        let stale = own.expires_at.since(now) < own.lease / 2;
        match (newcomer.is_zero(), stale) {
            (true, false) => None,
            (true, true) => Some(own.lease / 3),
            (false, _) => Some(newcomer),
        }
    }

    /// Removes what expired more than a lease ago. To be absent is to be dead, so this only keeps
    /// the table small.
    fn bury_the_long_dead(&mut self, caller: &IncarnationId, now: ServerTime) {
        let long_dead: Vec<IncarnationId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.expires_at.plus(session.lease) <= now)
            .filter(|(_, session)| self.doubt(caller, session.lease, now).is_none())
            .map(|(incarnation, _)| incarnation.clone())
            .collect();
        for incarnation in long_dead {
            self.sessions.remove(&incarnation);
        }
    }
}
