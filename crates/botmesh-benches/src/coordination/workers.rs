//! Many that work off messages at the same time, each one message after the other.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use botmesh_core::coordination::Coordinator;
use botmesh_core::id::ChatKey;
use tokio::task::JoinSet;

use super::{chat, take};

/// One that handles a message at a time.
pub(super) trait Worker: Send + 'static {
    /// Does what is to be done for one message of a chat.
    fn handle(&mut self, chat: &ChatKey) -> impl Future<Output = Result<()>> + Send;
}

/// A client without logic, whose workers do the least that must be done for a message: the limit.
pub(super) struct BareClient<W> {
    workers: tokio::sync::Mutex<Vec<W>>,
}

impl<W: Worker> BareClient<W> {
    pub(super) fn new(workers: Vec<W>) -> Self {
        Self { workers: tokio::sync::Mutex::new(workers) }
    }

    /// The fastest of several clients on this machine; each makes its rows on the way.
    pub(super) async fn fastest(
        clients: impl IntoIterator<Item = Self>,
        messages: u64,
    ) -> Result<Self> {
        let keys: Arc<[ChatKey]> = (0..10_000).map(chat).collect::<Result<_>>()?;
        let mut best = None;
        for client in clients {
            // Once so that everything is prepared and the rows are there.
            client.run(&keys, messages / 10).await?;
            let took = client.run(&keys, messages / 2).await?;
            if best.as_ref().is_none_or(|(least, _)| took < *least) {
                best = Some((took, client));
            }
        }
        best.map(|(_, client)| client).context("no client was tried")
    }

    /// How long `messages` messages take, one chat after the other.
    pub(super) async fn run(&self, keys: &Arc<[ChatKey]>, messages: u64) -> Result<Duration> {
        let mut workers = self.workers.lock().await;
        let (took, rested) = work_off(std::mem::take(&mut *workers), keys, messages).await?;
        *workers = rested;
        Ok(took)
    }
}

/// Takes the turn of each message and releases it.
struct Coordinated<C>(Arc<C>);

impl<C: Coordinator + 'static> Worker for Coordinated<C> {
    async fn handle(&mut self, chat: &ChatKey) -> Result<()> {
        Ok(take(&*self.0, chat).await?.release().await?)
    }
}

/// Takes and releases the turns of `messages` messages, one chat after the other and so many at the
/// same time.
pub(super) async fn coordinate<C: Coordinator + 'static>(
    replicas: &[Arc<C>],
    keys: &Arc<[ChatKey]>,
    messages: u64,
    at_once: usize,
) -> Result<Duration> {
    let workers = replicas.iter().cycle().take(at_once).map(Arc::clone).map(Coordinated);
    Ok(work_off(workers.collect(), keys, messages).await?.0)
}

/// How long the workers take for so many messages, of one chat after the other; and the workers.
async fn work_off<W: Worker>(
    workers: Vec<W>,
    keys: &Arc<[ChatKey]>,
    messages: u64,
) -> Result<(Duration, Vec<W>)> {
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for mut worker in workers {
        let (next, keys) = (Arc::clone(&next), Arc::clone(keys));
        working.spawn(async move {
            loop {
                let message = next.fetch_add(1, Ordering::Relaxed);
                if message >= messages {
                    return anyhow::Ok(worker);
                }
                worker.handle(&keys[usize::try_from(message)? % keys.len()]).await?;
            }
        });
    }
    let mut rested = Vec::new();
    while let Some(worker) = working.join_next().await {
        rested.push(worker??);
    }
    Ok((begun.elapsed(), rested))
}
