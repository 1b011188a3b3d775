//! Albums that come in several calls.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use botmesh_core::provider::{Inbound, WebhookRefusal};
use botmesh_core::{Message, MessageId};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::update;

/// How long after a part the next one may come.
const SETTLE: Duration = Duration::from_millis(600);

/// How long an album is gathered at most.
const LONGEST: Duration = Duration::from_secs(3);

/// How many parts an album has: <https://core.telegram.org/bots/api#sendmediagroup>.
const MOST: usize = 10;

/// How many parts are remembered after their album was accepted.
const REMEMBERED: usize = 10_000;

/// Puts the parts of albums together. Each call is answered when the whole album was accepted.
///
/// The calls may come to several replicas: then each makes an album of the parts that it got.
#[derive(Default)]
pub(super) struct Gathering(Mutex<State>);

#[derive(Default)]
struct State {
    open: HashMap<(i64, String), Album>,
    accepted: HashSet<(i64, MessageId)>,
    order: VecDeque<(i64, MessageId)>,
}

struct Album {
    parts: Vec<Message>,
    count: watch::Sender<usize>,
    outcome: watch::Receiver<Option<Result<(), WebhookRefusal>>>,
}

/// Forgets an album whose gathering was given up, so that its parts come again.
struct Abandon<'a>(&'a Gathering, Option<(i64, String)>);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if let Some(album) = self.1.take() {
            self.0.0.lock().open.remove(&album);
        }
    }
}

impl Gathering {
    /// Adds a part, and waits until the album was accepted or refused.
    pub(super) async fn add(
        &self,
        chat: i64,
        album: &str,
        part: Message,
        inbound: &Inbound,
    ) -> Result<(), WebhookRefusal> {
        let key = (chat, album.to_owned());
        let (outcomes, first) = {
            let mut state = self.0.lock();
            if part.id.as_ref().is_some_and(|id| state.accepted.contains(&(chat, id.clone()))) {
                return Ok(());
            }
            match state.open.get_mut(&key) {
                Some(open) => {
                    open.parts.push(part);
                    open.count.send_replace(open.parts.len());
                    (open.outcome.clone(), None)
                }
                None => {
                    let (count, counts) = watch::channel(1);
                    let (outcome, outcomes) = watch::channel(None);
                    let open = Album { parts: vec![part], count, outcome: outcomes.clone() };
                    state.open.insert(key.clone(), open);
                    (outcomes, Some((counts, outcome)))
                }
            }
        };
        let Some((counts, outcome)) = first else { return told(outcomes).await };
        let mut abandon = Abandon(self, Some(key.clone()));
        settled(counts).await;
        abandon.1 = None;
        let parts = self.0.lock().open.remove(&key).map(|open| open.parts).unwrap_or_default();
        let ids: Vec<MessageId> = parts.iter().filter_map(|part| part.id.clone()).collect();
        let delivered = match update::album(parts) {
            Some(whole) => inbound.deliver(whole).await.map(drop).map_err(WebhookRefusal::from),
            None => Ok(()),
        };
        if delivered.is_ok() {
            self.0.lock().remember(chat, ids);
        }
        outcome.send_replace(Some(delivered.clone()));
        delivered
    }
}

/// Waits until no more parts are to come.
async fn settled(mut counts: watch::Receiver<usize>) {
    let latest = Instant::now() + LONGEST;
    while *counts.borrow_and_update() < MOST {
        let until = (Instant::now() + SETTLE).min(latest);
        if tokio::time::timeout_at(until, counts.changed()).await.is_err() {
            return;
        }
    }
}

async fn told(
    mut outcomes: watch::Receiver<Option<Result<(), WebhookRefusal>>>,
) -> Result<(), WebhookRefusal> {
    match outcomes.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or(Err(WebhookRefusal::BUSY)),
        // Whoever gathered was cut off.
        Err(_) => Err(WebhookRefusal::BUSY),
    }
}

impl State {
    fn remember(&mut self, chat: i64, ids: Vec<MessageId>) {
        for id in ids {
            if self.accepted.insert((chat, id.clone())) {
                self.order.push_back((chat, id));
            }
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.accepted.remove(&oldest);
            }
        }
    }
}
