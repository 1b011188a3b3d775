//! Where an example keeps its state, as the environment says.

use std::env;
use std::time::Duration;

use botmesh_core::bot::{Coordination, Durability, Fallback, Handover};
use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::prelude::*;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;

/// One process on the SQLite file that `BOTMESH_DB` names, or `bot.db`. With `REDIS_URL`, one of
/// several replicas on Redis, under the prefix in `BOTMESH_PREFIX`, or `shop`. What was accepted
/// survives a crash with both.
pub async fn backend(bot: Bot) -> Result<Bot, BotError> {
    let durability = Durability::inbox_and_outbox();
    let Ok(url) = env::var("REDIS_URL") else {
        let path = env::var_os("BOTMESH_DB").unwrap_or_else(|| "bot.db".into());
        return Ok(bot.store(SqliteStore::open(path).await?).durability(durability));
    };
    let prefix = env::var("BOTMESH_PREFIX").unwrap_or_else(|_| "shop".into());
    let store = RedisStore::connect(url).prefix(prefix).await?;
    // A crash is noticed after this long. Keep it well above your worst pause.
    let lease = Duration::from_secs(5);
    let settings = CoordinatorSettings::builder().lease(lease).build()?;
    let coordinator = store.coordinator().settings(settings).build()?;
    let handover = Handover::forward().fallback(Fallback::Notify);
    let coordination = Coordination::new(coordinator).handover(handover);
    Ok(bot.store(store).coordination(coordination).durability(durability.lease(lease)))
}

/// Writes what goes wrong, and who leads, to standard error.
pub fn report(running: &RunningBot) {
    running.on(|event| match event {
        Event::Error(failed) => eprintln!("{} failed: {}", failed.during, failed.error),
        Event::Coordination(event) => eprintln!("{event:?}"),
        Event::DeadLetter { chat, error, .. } => eprintln!("{chat}: given up: {error}"),
        Event::Uncertain { chat, outcome } => {
            eprintln!("{chat}: a send was uncertain: {outcome:?}");
        }
        Event::Connection { provider, state } => eprintln!("{provider} is {state:?}"),
        _ => {}
    });
}
