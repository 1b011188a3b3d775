//! Checkpoints as a bot finds them: where a conversation stands, and what became of a job.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::schedule::durable;
use botmesh_core::{Bot, ChatKey, ProviderId};

use super::{saved_flow, stored};
use crate::memory::bounded;

/// What a bot is made of, beside what it holds of an input.
const BOT: usize = 16 << 20;

pub(crate) fn conversation(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 1024, BOT, |_| {
        stored::goes_on(
            |bot| answering(bot).flow(Arc::clone(&saved_flow::ORDER)),
            async |store, chat| stored::checkpoint(store, chat, body).await,
        );
    });
}

pub(crate) fn job(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 1024, BOT, |_| {
        let minute = Duration::from_secs(60);
        stored::goes_on(
            |bot| answering(bot).every(minute, durable("report"), |_| async { Ok(()) }),
            async |store, _| {
                let jobs = ProviderId::new("botmesh.job").unwrap();
                let report = ChatKey::new(&jobs, "report").unwrap();
                stored::checkpoint(store, &report, body).await;
            },
        );
    });
}

fn answering(bot: Bot) -> Bot {
    bot.fallback(|ctx| async move { ctx.reply("pong").await })
}

pub(crate) fn conversation_seeds() -> Vec<Vec<u8>> {
    let mut seeds = saved_flow::seeds();
    seeds.push(br#"{"stub":"order"}"#.to_vec());
    seeds
}

pub(crate) fn job_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"schedule":"every 60000 ms","slot":1767225600000,"attempts":2,"retry_at":1767225601000}"#,
        r#"{"schedule":"every 60000 ms","slot":0}"#,
        r#"{"schedule":"every 60000 ms","slot":18446744073709551615,"attempts":4294967295}"#,
    ]
    .map(|record| record.as_bytes().to_vec())
    .into()
}
