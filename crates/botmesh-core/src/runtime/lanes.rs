use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::arrival::Arrival;
use super::hashed::{ChatHasher, HashedChat, HashedMap, SHARDS};
use super::place::{Place, Reserved};
use super::recent::Recent;
use super::records::Own;
use super::timer::Wake;
use crate::id::{ChatKey, MessageId};
use crate::message::Message;
use crate::provider::{Accepted, DeliverError};

/// The queues of the chats: one lane for each chat that has work, served by one task at a time.
///
/// A lane exists only while its task runs, so an idle chat costs nothing here.
pub(crate) struct Lanes {
    shards: Box<[Mutex<Shard>]>,
    hasher: ChatHasher,
    limits: LaneLimits,
    /// Messages that were accepted and are not handled yet, of all chats.
    in_work: AtomicUsize,
    waiting_for_room: AtomicUsize,
    room: Notify,
    idle: Notify,
    closed: AtomicBool,
    aborted: AtomicBool,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneLimits {
    pub(crate) in_work: usize,
    pub(crate) per_chat: usize,
    pub(crate) remembered_ids: usize,
}

impl LaneLimits {
    /// Whoever waits for room goes on when fewer are in work: some at a time, so that a flood does
    /// not switch tasks for each message, but so few that hardly any room stays empty.
    fn resumes_below(self) -> usize {
        self.in_work - (self.in_work / 8).min(64)
    }
}

/// A piece of work, and its place in the queue across replicas where there are several.
pub(crate) struct Queued {
    pub(crate) work: Work,
    pub(crate) place: Option<Place>,
}

/// What a lane begins with.
pub(crate) enum First {
    Queued(Queued),
    /// A message that is admitted here, and becomes work when it was.
    Arrival(Box<Arrival>),
}

/// What a lane's task does next.
pub(crate) enum Work {
    /// Boxed: it passes through many hands, of which each would copy it.
    Message(Box<Message>),
    Wake(Wake),
    /// The first pending record of the chat, which may be the one that was admitted here.
    Record(Option<Box<Own>>),
}

/// Whether a message may come in.
pub(crate) enum Entrance {
    /// There is room for it, which is the caller's now: it is to be pushed, or the room given back.
    Open,
    /// It was accepted before.
    Known,
}

struct Shard {
    lanes: HashedMap<HashedChat, Lane>,
    recent: Recent,
}

struct Lane {
    queue: VecDeque<Queued>,
    last_place: Option<Reserved>,
    task: AbortHandle,
}

/// Why a message cannot be admitted just now.
pub(crate) enum Refusal<T> {
    /// There is no room in the whole bot; there will be.
    NoRoom(T),
    Final(DeliverError),
}

impl Lanes {
    pub(crate) fn new(limits: LaneLimits) -> Self {
        let shard = || {
            let recent = Recent::new((limits.remembered_ids / SHARDS).max(2));
            Mutex::new(Shard { lanes: HashedMap::default(), recent })
        };
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            hasher: ChatHasher::default(),
            limits,
            in_work: AtomicUsize::new(0),
            waiting_for_room: AtomicUsize::new(0),
            room: Notify::new(),
            idle: Notify::new(),
            closed: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
        }
    }

    /// Puts a message behind the others of its chat; `start` begins the task of a new lane.
    pub(crate) fn admit(
        &self,
        message: Box<Message>,
        start: &impl Start,
    ) -> Result<Accepted, Refusal<Box<Message>>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Refusal::Final(DeliverError::Stopping));
        }
        let chat = self.hasher.chat(&message.chat);
        let seen = message.id.as_ref().map(|id| self.hasher.message(&chat, id));
        let mut shard = self.shard(&chat).lock();
        let Shard { lanes, recent } = &mut *shard;
        if seen.is_some_and(|seen| recent.contains(seen)) {
            return Ok(Accepted::Duplicate);
        }
        let lane = lanes.entry(chat);
        if let Entry::Occupied(lane) = &lane
            && lane.get().queue.len() >= self.limits.per_chat
        {
            let waiting = lane.get().queue.len();
            return Err(Refusal::Final(DeliverError::ChatFull { waiting }));
        }
        if !self.take_room() {
            return Err(Refusal::NoRoom(message));
        }
        // Remembered only once nothing can refuse it: a platform's retry must not be swallowed.
        if let Some(seen) = seen {
            recent.insert(seen);
        }
        push(lane, Work::Message(message), start);
        Ok(Accepted::New)
    }

    /// Takes room for a message that has to be admitted elsewhere before it is pushed.
    pub(crate) fn enter(
        &self,
        chat: &ChatKey,
        id: Option<&MessageId>,
    ) -> Result<Entrance, Refusal<()>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Refusal::Final(DeliverError::Stopping));
        }
        let chat = self.hasher.chat(chat);
        let shard = self.shard(&chat).lock();
        if id.is_some_and(|id| shard.recent.contains(self.hasher.message(&chat, id))) {
            return Ok(Entrance::Known);
        }
        let waiting = shard.lanes.get(&chat).map_or(0, |lane| lane.queue.len());
        if waiting >= self.limits.per_chat {
            return Err(Refusal::Final(DeliverError::ChatFull { waiting }));
        }
        if self.take_room() { Ok(Entrance::Open) } else { Err(Refusal::NoRoom(())) }
    }

    /// Begins the lane of a chat with a message that is admitted there, in the room that
    /// [`enter`](Self::enter) gave. Gives it back when the chat has a lane.
    pub(crate) fn open(
        &self,
        arrival: Box<Arrival>,
        start: &impl Start,
    ) -> Result<(), Box<Arrival>> {
        let chat = self.hasher.chat(&arrival.message.chat);
        let mut shard = self.shard(&chat).lock();
        match shard.lanes.entry(chat) {
            Entry::Vacant(vacant) if !self.aborted.load(Ordering::Acquire) => {
                let last_place = Some(arrival.reserved());
                let task = start.lane(vacant.key().clone(), First::Arrival(arrival));
                vacant.insert(Lane { queue: VecDeque::new(), last_place, task });
                Ok(())
            }
            _ => Err(arrival),
        }
    }

    /// Puts work behind what its chat has, in the room that [`enter`](Self::enter) gave.
    pub(crate) fn push(&self, chat: &ChatKey, work: Work, start: &impl Start) {
        let chat = self.hasher.chat(chat);
        let mut shard = self.shard(&chat).lock();
        // Those that had room before the bot began to stop are still processed.
        if self.aborted.load(Ordering::Acquire) {
            return;
        }
        push(shard.lanes.entry(chat), work, start);
    }

    /// From now on a message with this id is known.
    pub(crate) fn remember(&self, chat: &ChatKey, id: Option<&MessageId>) {
        let Some(id) = id else { return };
        let chat = self.hasher.chat(chat);
        let seen = self.hasher.message(&chat, id);
        self.shard(&chat).lock().recent.insert(seen);
    }

    /// Puts a look for records of the chat behind what it has. It has no limit: there are no more
    /// than records.
    pub(crate) fn drain(&self, chat: &ChatKey, start: &impl Start) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let chat = self.hasher.chat(chat);
        let mut shard = self.shard(&chat).lock();
        self.in_work.fetch_add(1, Ordering::AcqRel);
        push(shard.lanes.entry(chat), Work::Record(None), start);
    }

    /// Puts a wake-up behind the messages of its chat. It has no limit: there is at most one for
    /// each timer.
    pub(crate) fn wake(&self, wake: Wake, start: &impl Start) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let chat = self.hasher.chat(&wake.chat);
        let mut shard = self.shard(&chat).lock();
        self.in_work.fetch_add(1, Ordering::AcqRel);
        push(shard.lanes.entry(chat), Work::Wake(wake), start);
    }

    /// Takes the next work of a lane, whose task has finished one; none ends the lane.
    pub(crate) fn next(&self, chat: &HashedChat) -> Option<Queued> {
        let next = {
            let mut shard = self.shard(chat).lock();
            let next = shard.lanes.get_mut(chat).and_then(|lane| lane.queue.pop_front());
            if next.is_none() {
                shard.lanes.remove(chat);
            }
            next
        };
        self.give_room();
        next
    }

    /// The next place of the chat, for work whose own place was lost. All work behind it moves up
    /// by one place, and the last gets a new one. So the first of the places is always with the
    /// work that is done first: were it with later work, each would wait for the other.
    pub(crate) fn next_place(&self, chat: &ChatKey, start: &impl Start) -> Option<Place> {
        let chat = self.hasher.chat(chat);
        let mut shard = self.shard(&chat).lock();
        let lane = shard.lanes.get_mut(&chat)?;
        let (place, reserved) = start.reserve(chat.chat(), lane.last_place.take())?;
        lane.last_place = Some(reserved);
        let mut free = Some(place);
        for queued in lane.queue.iter_mut().rev() {
            std::mem::swap(&mut queued.place, &mut free);
        }
        free
    }

    /// Waits until another message may be taken.
    pub(crate) async fn room(&self) {
        let _waiting = CountGuard::enter(&self.waiting_for_room);
        let mut woken = std::pin::pin!(self.room.notified());
        woken.as_mut().enable();
        // In one order with `give_room`, which counts first and looks for waiters then.
        if self.in_work.load(Ordering::SeqCst) < self.limits.resumes_below()
            || self.closed.load(Ordering::Acquire)
        {
            return;
        }
        woken.await;
    }

    /// Takes no more work; what was accepted goes on.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.room.notify_waiters();
    }

    /// Waits until everything that was accepted is done.
    pub(crate) async fn idle(&self) {
        loop {
            let mut woken = std::pin::pin!(self.idle.notified());
            woken.as_mut().enable();
            if self.in_work.load(Ordering::Acquire) == 0 {
                return;
            }
            woken.await;
        }
    }

    /// Ends all lanes where they stand; returns how many messages and wake-ups were lost.
    pub(crate) fn abort(&self) -> usize {
        self.close();
        self.aborted.store(true, Ordering::Release);
        let drain = |shard: &Mutex<Shard>| shard.lock().lanes.drain().collect::<Vec<_>>();
        let mut lanes: Vec<_> = self.shards.iter().flat_map(drain).collect();
        // Not in the order of their hashes, which is another one in each process.
        lanes.sort_by(|(one, _), (other, _)| one.chat().cmp(other.chat()));
        for (_, lane) in lanes {
            lane.task.abort();
        }
        let lost = self.in_work.swap(0, Ordering::AcqRel);
        self.idle.notify_waiters();
        lost
    }

    fn take_room(&self) -> bool {
        let most = self.limits.in_work;
        let take = |taken: usize| (taken < most).then_some(taken + 1);
        self.in_work.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    pub(crate) fn give_room(&self) {
        // After `abort` the count is zero already.
        let give = |taken: usize| taken.checked_sub(1);
        let Ok(before) = self.in_work.fetch_update(Ordering::SeqCst, Ordering::SeqCst, give) else {
            return;
        };
        if before <= self.limits.resumes_below() && self.waiting_for_room.load(Ordering::SeqCst) > 0
        {
            self.room.notify_one();
        }
        if before == 1 {
            self.idle.notify_waiters();
        }
    }

    fn shard(&self, chat: &HashedChat) -> &Mutex<Shard> {
        &self.shards[chat.shard()]
    }
}

fn push(lane: Entry<'_, HashedChat, Lane>, work: Work, start: &impl Start) {
    match lane {
        Entry::Occupied(mut lane) => {
            let behind = lane.get_mut().last_place.take();
            let (place, reserved) = start.reserve(lane.key().chat(), behind).unzip();
            let lane = lane.get_mut();
            lane.last_place = reserved;
            lane.queue.push_back(Queued { work, place });
        }
        Entry::Vacant(vacant) => {
            let (place, last_place) = start.reserve(vacant.key().chat(), None).unzip();
            let task = start.lane(vacant.key().clone(), First::Queued(Queued { work, place }));
            vacant.insert(Lane { queue: VecDeque::new(), last_place, task });
        }
    }
}

/// What begins when work arrives.
pub(crate) trait Start {
    /// The task of a new lane.
    fn lane(&self, chat: HashedChat, first: First) -> AbortHandle;

    /// The reservation of a place across replicas behind the last one of the chat; none when the
    /// process is alone.
    fn reserve(&self, chat: &ChatKey, behind: Option<Reserved>) -> Option<(Place, Reserved)>;
}

struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
