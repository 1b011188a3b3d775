//! Asking for updates: <https://core.telegram.org/bots/api#getupdates>.

pub(crate) mod batch;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use botmesh_core::provider::{ConnectionState, DeliverError, ProviderError, Session};
use bytes::Bytes;
use serde_json::json;
use teloxide_core::payloads::DeleteWebhook;

use crate::api::{Answer, Failure};
use crate::slot::Entrance;
use crate::telegram::Inner;
use crate::trouble::Trouble;
use batch::Parcel;

/// How many updates are asked for at a time, which is the most there are.
const BATCH: u8 = 100;

/// The longest answer with updates.
const MAX_BATCH: usize = 64 << 20;

/// How much longer than Telegram keeps a question open its answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How long before its lease ends the question of a leader is over.
const MARGIN: Duration = Duration::from_secs(1);

/// How long the parts of an album may take to arrive.
const SETTLE: Duration = Duration::from_millis(500);

/// How long a chat that is full has to make room.
const FULL: Duration = Duration::from_millis(500);

/// How often an update that cannot be read is asked for before it is left out.
const TRIES: u32 = 3;

/// How updates are asked for.
#[derive(Debug)]
pub(crate) struct Polling {
    poll: Duration,
    updates: Vec<String>,
    delete_webhook: bool,
}

impl Polling {
    pub(crate) const fn new(poll: Duration, updates: Vec<String>, delete_webhook: bool) -> Self {
        Self { poll, updates, delete_webhook }
    }
}

/// Asks until the session ends.
pub(crate) async fn run(
    inner: &Inner,
    settings: &Polling,
    session: &Session,
) -> Result<(), ProviderError> {
    let recipient = tokio::select! {
        biased;
        () = session.cancelled() => return Ok(()),
        recipient = inner.introduce(session) => recipient?,
    };
    let (entrance, pressed) = Entrance::new(session.inbound().clone(), recipient);
    let mut poller = Poller::new(inner, settings, session, &entrance);
    tokio::select! {
        biased;
        () = session.cancelled() => {}
        ended = poller.poll() => return ended,
        () = inner.answer_presses(pressed) => {}
    }
    poller.close().await;
    Ok(())
}

struct Poller<'a> {
    inner: &'a Inner,
    settings: &'a Polling,
    session: &'a Session,
    entrance: &'a Entrance,
    /// All updates before this one were accepted.
    offset: i64,
    /// What was accepted behind an update that was not.
    accepted: BTreeSet<i64>,
    /// How many parts of an album were there the last time.
    albums: HashMap<(i64, String), usize>,
    /// What is to come soon, so that nothing is waited for.
    hurried: bool,
    limit: u8,
    unreadable: u32,
    trouble: Trouble,
}

impl<'a> Poller<'a> {
    fn new(
        inner: &'a Inner,
        settings: &'a Polling,
        session: &'a Session,
        entrance: &'a Entrance,
    ) -> Self {
        Self {
            inner,
            settings,
            session,
            entrance,
            offset: 0,
            accepted: BTreeSet::new(),
            albums: HashMap::new(),
            // The first answer tells that the connection works, also when nothing happens.
            hurried: true,
            limit: BATCH,
            unreadable: 0,
            trouble: Trouble::default(),
        }
    }

    async fn poll(&mut self) -> Result<(), ProviderError> {
        if self.settings.delete_webhook {
            self.delete_webhook().await?;
        }
        loop {
            let answer = match self.fetch(self.limit, self.patience(), ANSWER_TIME).await {
                Ok(answer) => answer,
                Err(failure) => {
                    self.failed(failure).await?;
                    continue;
                }
            };
            match Answer::result(&answer, self.inner.api.token()) {
                Ok(updates) => match batch::read(updates) {
                    Some(batch) => self.take(batch).await?,
                    None => self.failed(Failure::unread(&answer)).await?,
                },
                Err(Failure::NoAnswer(_)) => self.failed(Failure::unread(&answer)).await?,
                Err(failure) => self.failed(failure).await?,
            }
        }
    }

    async fn fetch(&self, limit: u8, open: Duration, more: Duration) -> Result<Bytes, Failure> {
        let body = json!({
            "offset": self.offset,
            "limit": limit,
            "timeout": open.as_secs(),
            "allowed_updates": self.settings.updates,
        });
        let body = body.to_string().into_bytes();
        self.inner.api.post("getUpdates", body, open + more, MAX_BATCH).await
    }

    /// How long Telegram may keep the next question open: it has to be over before somebody else
    /// may ask, even if this process freezes now.
    fn patience(&self) -> Duration {
        let poll = if self.hurried { Duration::ZERO } else { self.settings.poll };
        let leased = self.session.exclusive_for().map(|left| left.saturating_sub(MARGIN));
        leased.map_or(poll, |left| poll.min(left))
    }

    /// Hands over what came. The offset moves behind all that was accepted.
    async fn take(&mut self, batch: batch::Batch<'_>) -> Result<(), ProviderError> {
        self.trouble.over();
        self.unreadable = 0;
        self.limit = BATCH;
        self.hurried = false;
        self.session.set_state(ConnectionState::Open);
        for (id, reason) in batch.unreadable {
            self.report_unreadable(reason);
            self.accepted.extend(id);
        }
        let last = batch.updates.last().map(crate::Update::id);
        let new = batch.updates.into_iter().filter(|update| !self.accepted.contains(&update.id()));
        let parcels = batch::parcels(new.collect(), &self.entrance.recipient);
        let mut wait = None;
        let mut first_held = i64::MAX;
        let mut held = HashSet::new();
        for parcel in parcels {
            let chat = parcel.message.chat.clone();
            let first = parcel.ids.first().copied().unwrap_or(i64::MAX);
            if held.contains(&chat) {
                first_held = first_held.min(first);
                continue;
            }
            if !self.is_whole(&parcel) {
                (wait, first_held) = (wait.or(Some(SETTLE)), first_held.min(first));
                held.insert(chat);
                continue;
            }
            match self.entrance.inbound.deliver(parcel.message).await {
                Ok(_) => {
                    self.accepted.extend(parcel.ids);
                    if let Some(callback) = parcel.callback {
                        self.entrance.answer(&callback);
                    }
                }
                Err(DeliverError::ChatFull { .. } | DeliverError::Store(_)) => {
                    (wait, first_held) = (Some(FULL), first_held.min(first));
                    held.insert(chat);
                }
                Err(DeliverError::Stopping) => {
                    self.settle_offset(last, first_held.min(first));
                    self.session.cancelled().await;
                    return Ok(());
                }
                Err(error) => {
                    let provider = self.inner.id.clone();
                    return Err(ProviderError::Closed { provider, reason: error.to_string() });
                }
            }
        }
        self.settle_offset(last, first_held);
        if let Some(wait) = wait {
            self.hurried = true;
            tokio::time::sleep(wait).await;
        } else {
            self.albums.clear();
        }
        Ok(())
    }

    /// Moves the offset to the first update that was not accepted.
    fn settle_offset(&mut self, last: Option<i64>, first_held: i64) {
        let behind = last.into_iter().chain(self.accepted.last().copied()).max();
        let Some(next) = behind.map(|last| last.saturating_add(1)) else { return };
        let next = next.min(first_held);
        self.offset = next;
        self.accepted = self.accepted.split_off(&next);
    }

    /// Whether no more parts of the album are to come: none came since the last time.
    fn is_whole(&mut self, parcel: &Parcel) -> bool {
        let Some(album) = &parcel.album else { return true };
        let parts = parcel.ids.len();
        parts >= 10 || self.albums.insert(album.clone(), parts) == Some(parts)
    }

    async fn failed(&mut self, failure: Failure) -> Result<(), ProviderError> {
        if failure.is_webhook_conflict() {
            let reason = "a webhook is set for this bot: remove it with `deleteWebhook`, or let `PollingBuilder::delete_webhook` do that";
            let provider = self.inner.id.clone();
            return Err(ProviderError::Closed { provider, reason: reason.to_owned() });
        }
        if let Failure::TooLong { head, .. } | Failure::Unread { head } = &failure {
            // One update may spoil all that come with it, so it is looked for alone.
            let alone = self.limit == 1;
            self.limit = 1;
            self.unreadable += u32::from(alone);
            if self.unreadable >= TRIES
                && let Some(id) = batch::first_id(head)
            {
                self.report_unreadable(format!("update {id}: {failure}"));
                self.accepted.insert(id);
                self.settle_offset(Some(id), i64::MAX);
                self.unreadable = 0;
                return Ok(());
            }
        }
        self.inner.sit_out(self.session, failure, &mut self.trouble).await
    }

    fn report_unreadable(&self, reason: String) {
        let provider = self.inner.id.clone();
        self.session.report(ProviderError::Unreadable { provider, reason });
    }

    async fn delete_webhook(&mut self) -> Result<(), ProviderError> {
        while let Err(failure) = self.inner.call(&DeleteWebhook::new()).await {
            self.inner.sit_out(self.session, failure, &mut self.trouble).await?;
        }
        Ok(())
    }

    /// Asks once more, without waiting for anything. That tells Telegram what was accepted, which the
    /// next process would get again otherwise, and ends a question that is still open there: whoever
    /// asks next meets none of ours.
    async fn close(&self) {
        let told = self.fetch(1, Duration::ZERO, Duration::from_secs(2)).await;
        if let Err(failure) = told {
            tracing::debug!(%failure, "the last question was not answered");
        }
    }
}
