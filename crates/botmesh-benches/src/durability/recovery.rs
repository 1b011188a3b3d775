//! How long it takes until everything is answered that waits after a crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use botmesh_core::Bot;
use botmesh_core::bot::Durability;
use botmesh_core::id::{MessageId, ProviderId};
use botmesh_core::message::Message;
use botmesh_core::store::{Admission, NewRecord, Store};
use tokio::task::JoinSet;

use super::backend::Site;
use super::callers::{Callers, Crowd, UNATTENDED, chat};
use super::{AT_ONCE, answering, told};

/// So many records each chat has.
const EACH: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(600);

/// Admits so many records as a process did that died, and starts another one, for which their
/// leases have ended. How long it takes from its start to the last reply.
pub(super) async fn measure(site: &Site, pending: u64) -> Result<Duration> {
    fill(site.store().await?, pending).await?;
    let crowd = Arc::new(Crowd::new(AT_ONCE, 1));
    let bot = site.equip(Bot::new(Callers::new(Arc::clone(&crowd), 0)?), false).await?;
    let begun = Instant::now();
    let bot = bot.durability(Durability::inbox_and_outbox());
    let running = answering(bot).start().await.map_err(told)?;
    while crowd.unattended() < pending {
        ensure!(begun.elapsed() < PATIENCE, "{} of {pending} were answered", crowd.unattended());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = begun.elapsed();
    running.idle().await;
    ensure!(crowd.unattended() == pending, "{} answers to {pending}", crowd.unattended());
    running.stop().await;
    Ok(took)
}

async fn fill(store: Arc<dyn Store>, pending: u64) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut filling = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (store, next) = (Arc::clone(&store), Arc::clone(&next));
        filling.spawn(async move {
            let provider = ProviderId::new("callers")?;
            let inbox = store.inbox().context("the store has no inbox")?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pending {
                    return anyhow::Ok(());
                }
                let id = MessageId::new(format!("pending-{number}"))?;
                let chat = chat(&provider, number % (pending / EACH).max(1))?;
                let message = Message::text(chat.clone(), UNATTENDED).with_id(id.clone());
                let body = serde_json::to_string(&message)?;
                let record = NewRecord {
                    chat: &chat,
                    message: Some(&id),
                    body: Some(&body),
                    lease: Duration::from_millis(1),
                    most: usize::MAX >> 1,
                };
                let admitted = inbox.admit(record).await?;
                ensure!(matches!(admitted, Admission::New { .. }), "{admitted:?}");
            }
        });
    }
    while let Some(filled) = filling.join_next().await {
        filled??;
    }
    Ok(())
}
