//! What a client without any logic reaches by the same driver, with the same guarantees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::id::ChatKey;
use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, WriteConcern};
use mongodb::{Client, Collection};
use tokio::task::JoinSet;

use super::{AT_ONCE, CONNECTIONS, DATABASE};

/// Two operations for each message: the least that a coordinator has to write.
pub(super) struct BareClient {
    client: Client,
    rows: Collection<Document>,
}

impl BareClient {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let mut options = ClientOptions::parse(url).await?;
        let mut majority = WriteConcern::majority();
        majority.journal = Some(true);
        options.write_concern = Some(majority);
        options.retry_writes = Some(false);
        options.max_pool_size = Some(CONNECTIONS);
        let client = Client::with_options(options)?;
        client.database(DATABASE).drop().await?;
        let rows = client.database(DATABASE).collection("bare");
        Ok(Self { client, rows })
    }

    /// Whether the server is the one that tests use in place of MongoDB.
    pub(super) async fn is_stand_in(&self) -> Result<bool> {
        let hello = self.client.database("admin").run_command(doc! { "hello": 1 }).await?;
        Ok(hello.get_str("setName").is_ok_and(|name| name == "secantus"))
    }

    pub(super) async fn drop_everything(&self) -> Result<()> {
        Ok(self.client.database(DATABASE).drop().await?)
    }

    /// How long `messages` messages take, one chat after the other.
    pub(super) async fn run(&self, keys: &Arc<[ChatKey]>, messages: u64) -> Result<Duration> {
        let next = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (rows, keys, next) = (self.rows.clone(), Arc::clone(keys), Arc::clone(&next));
            workers.spawn(async move {
                loop {
                    let message = next.fetch_add(1, Ordering::Relaxed);
                    if message >= messages {
                        return anyhow::Ok(());
                    }
                    let key = &keys[usize::try_from(message)? % keys.len()];
                    take(&rows, key).await?;
                    let free = doc! { "$unset": { "holder": "" } };
                    rows.find_one_and_update(doc! { "_id": key.as_str() }, free).await?;
                }
            });
        }
        while let Some(worker) = workers.join_next().await {
            worker??;
        }
        Ok(begun.elapsed())
    }

    /// How long one operation takes.
    pub(super) async fn one(&self, key: &ChatKey) -> Result<Duration> {
        let begun = Instant::now();
        take(&self.rows, key).await?;
        Ok(begun.elapsed())
    }
}

async fn take(rows: &Collection<Document>, key: &ChatKey) -> Result<()> {
    let taken = doc! {
        "$set": { "holder": "replica#0123456789abcdef01234567" },
        "$inc": { "fence": 1_i64 },
    };
    rows.find_one_and_update(doc! { "_id": key.as_str() }, taken).upsert(true).await?;
    Ok(())
}
