//! A bot that may run as many times as you like: its replicas share a Redis.
//!
//! Start it in two terminals with `REDIS_URL=redis://localhost:6379 cargo run --example
//! replicas_redis`. Type `/signup` in one, kill it with `kill -9` at a question, and answer in the
//! other: it goes on at the same question. Without `REDIS_URL` it is one process on SQLite.

use std::env;
use std::time::Duration;

use botmesh_core::bot::{Coordination, Fallback, Handover};
use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::prelude::*;
use botmesh_examples::signup::signup;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let bot = Bot::new(Terminal::new());
    let bot = match env::var("REDIS_URL") {
        Err(_) => bot.store(SqliteStore::open("replicas.db").await?),
        Ok(url) => {
            let store = RedisStore::connect(url).prefix("replicas").await?;
            // A crash is noticed after this long. Keep it well above your worst pause.
            let settings = CoordinatorSettings::builder().lease(Duration::from_secs(5)).build()?;
            let coordinator = store.coordinator().settings(settings).build()?;
            let handover = Handover::forward().fallback(Fallback::Notify);
            bot.store(store).coordination(Coordination::new(coordinator).handover(handover))
        }
    };
    let running = bot
        .flow(signup())
        .fallback(|ctx| async move { ctx.reply("Say /signup to begin.").await })
        .start()
        .await?;
    running.on(|event| match event {
        Event::Error(failed) => eprintln!("{} failed: {}", failed.during, failed.error),
        Event::Coordination(event) => eprintln!("{event:?}"),
        _ => {}
    });
    running.until_signal().await
}
