mod contracts;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::ChatKey;
use crate::conformance::StoreFixture;
use crate::id::{Fence, Revision};
use crate::store::{CheckpointWrite, Collection, Document, LockToken, Store, StoredCheckpoint};
use crate::time::{Clock, Timestamp};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    LosesUpdates,
    ReusesRevisions,
    IgnoresRevisions,
    IgnoresFences,
    RefusesEqualFences,
    RaisesFencesOnRefusal,
    LowersFences,
    ForgetsFences,
    AdoptsWithoutRaising,
    AdoptsInTwoSteps,
    RestartsFences,
    GivesLocksTwice,
    ReleasesForAnyone,
    RenewsForAnyone,
    RenewsExpired,
    RenewsNothing,
    NeverExpires,
    ExpiresEarly,
    StopsTheClock,
    WakesInAnyOrder,
    FoldsCase,
    IgnoresAccents,
    TrimsKeys,
    CutsKeys,
    CutsBodies,
    CutsAtNul,
    MixesCollections,
    MixesPrefixes,
    PreparesOnce,
    PreparesAnew,
    KeepsCopies,
    LosesAllWhenClosed,
}

/// Opens stores with one flaw.
#[derive(Debug)]
pub(super) struct FlawedFixture {
    flaw: Flaw,
    clock: Clock,
    kept: Mutex<BTreeMap<String, Arc<Mutex<Data>>>>,
    open: Mutex<BTreeMap<String, Weak<Mutex<Data>>>>,
}

impl FlawedFixture {
    pub(super) fn new(flaw: Flaw) -> Self {
        let clock = Clock::following_tokio(Timestamp::from_millis(1_000_000));
        Self { flaw, clock, kept: Mutex::default(), open: Mutex::default() }
    }
}

#[async_trait]
impl StoreFixture for FlawedFixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let prefix = if self.flaw == Flaw::MixesPrefixes { "" } else { prefix };
        let open = self.open.lock().get(prefix).and_then(Weak::upgrade);
        let data = match self.flaw {
            Flaw::KeepsCopies => Arc::default(),
            Flaw::LosesAllWhenClosed => open.unwrap_or_default(),
            _ => Arc::clone(self.kept.lock().entry(prefix.to_owned()).or_default()),
        };
        self.open.lock().insert(prefix.to_owned(), Arc::downgrade(&data));
        Some(Arc::new(Flawed { flaw: self.flaw, clock: self.clock.clone(), data }))
    }
}

/// A store that is as simple as can be, and right but for its flaw.
#[derive(Debug)]
struct Flawed {
    flaw: Flaw,
    clock: Clock,
    data: Arc<Mutex<Data>>,
}

#[derive(Debug, Default)]
struct Data {
    prepared: bool,
    last: u64,
    documents: BTreeMap<(&'static str, String), Document>,
    rows: BTreeMap<String, Row>,
    locks: BTreeMap<String, Held>,
}

/// A checkpoint; without a body it is only the memory of a fence.
#[derive(Debug, Clone)]
struct Row {
    key: ChatKey,
    revision: Revision,
    fence: Fence,
    body: Option<String>,
    ends_at: u64,
    wake_at: Option<u64>,
}

#[derive(Debug)]
struct Held {
    token: LockToken,
    fence: u64,
    ends_at: u64,
}

impl Flawed {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn now(&self) -> u64 {
        self.clock.now_micros()
    }

    fn end(&self, time: Duration) -> u64 {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        match self.flaw {
            Flaw::NeverExpires => u64::MAX,
            Flaw::ExpiresEarly => self.now().saturating_add(micros / 2),
            _ => self.now().saturating_add(micros),
        }
    }

    fn key(&self, key: &str) -> String {
        match self.flaw {
            Flaw::FoldsCase => key.to_lowercase(),
            Flaw::IgnoresAccents => key.replace('\u{301}', ""),
            Flaw::TrimsKeys => key.trim_end().to_owned(),
            Flaw::CutsKeys => key.chars().take(191).collect(),
            Flaw::CutsAtNul => key.split('\0').next().unwrap_or_default().to_owned(),
            _ => key.to_owned(),
        }
    }

    fn body(&self, body: &str) -> String {
        let limit = if self.has(Flaw::CutsBodies) { 65_535 } else { usize::MAX };
        body.chars().take(limit).collect()
    }

    fn place(&self, collection: Collection, key: &str) -> (&'static str, String) {
        let mixes = self.has(Flaw::MixesCollections);
        (if mixes { "" } else { collection.as_str() }, self.key(key))
    }

    fn next(&self, data: &mut Data, present: Option<Revision>) -> Revision {
        data.last += 1;
        let counted = present.map_or(1, |revision| revision.get() + 1);
        Revision::new(if self.has(Flaw::ReusesRevisions) { counted } else { data.last })
    }

    /// What a careless store does between a look and a deed.
    async fn pause_if(&self, flaw: Flaw) {
        if self.has(flaw) {
            tokio::task::yield_now().await;
        }
    }

    fn live(&self, data: &Data, key: &ChatKey) -> Option<Row> {
        let row = data.rows.get(&self.key(key.as_str()))?;
        (row.body.is_some() && row.ends_at > self.now()).then(|| row.clone())
    }

    fn fence(&self, data: &Data, key: &ChatKey) -> Option<Fence> {
        let forgets = self.has(Flaw::ForgetsFences) && self.live(data, key).is_none();
        let row = data.rows.get(&self.key(key.as_str())).filter(|_| !forgets)?;
        Some(row.fence)
    }

    fn is_met(&self, key: &ChatKey, expected: Option<Revision>, fence: Fence) -> bool {
        let mut data = self.data.lock();
        let present = self.live(&data, key).map(|row| row.revision);
        let known = self.fence(&data, key);
        let fits = match self.flaw {
            Flaw::IgnoresFences => true,
            Flaw::RefusesEqualFences => known.is_none_or(|known| known < fence),
            _ => known.is_none_or(|known| known <= fence),
        };
        let met = fits && (present == expected || self.has(Flaw::IgnoresRevisions));
        if let (false, Flaw::RaisesFencesOnRefusal, Some(row)) =
            (met, self.flaw, data.rows.get_mut(&self.key(key.as_str())))
        {
            row.fence = row.fence.max(fence);
        }
        met
    }

    fn put(&self, key: &ChatKey, write: Option<CheckpointWrite<'_>>, fence: Fence) -> Revision {
        let mut data = self.data.lock();
        let present = self.live(&data, key).map(|row| row.revision);
        let revision = self.next(&mut data, present);
        let row = Row {
            key: key.clone(),
            revision,
            fence,
            body: write.as_ref().map(|write| self.body(write.body)),
            ends_at: write.as_ref().and_then(|w| w.expires_in).map_or(u64::MAX, |t| self.end(t)),
            wake_at: write.and_then(|w| w.wake_in).map(|time| {
                self.now().saturating_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
            }),
        };
        data.rows.insert(self.key(key.as_str()), row);
        revision
    }

    fn left(&self, moment: u64) -> Duration {
        let now = if self.has(Flaw::StopsTheClock) { 1_000_000_000 } else { self.now() };
        Duration::from_micros(moment.saturating_sub(now))
    }

    fn stored(&self, row: Row) -> StoredCheckpoint {
        StoredCheckpoint {
            revision: row.revision,
            fence: row.fence,
            body: row.body.unwrap_or_default(),
            wake_in: row.wake_at.map(|moment| self.left(moment)),
        }
    }
}
