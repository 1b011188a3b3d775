//! A small shop in two languages: `cargo run --example shop`, then type `/start`.
//!
//! The bot itself is `src/shop.rs`, which knows neither the terminal nor SQLite. What it knows
//! lies in the file that `BOTMESH_DB` names, or in `shop.db`.

use std::env;

use botmesh_core::prelude::*;
use botmesh_examples::shop::shop;
use botmesh_sqlite_store::SqliteStore;

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let path = env::var_os("BOTMESH_DB").unwrap_or_else(|| "shop.db".into());
    let store = SqliteStore::open(path).await?;
    let running = shop(Bot::new(Terminal::new()).store(store)).start().await?;
    running.on(|event| {
        if let Event::Error(failed) = event {
            eprintln!("{} failed: {}", failed.during, failed.error);
        }
    });
    running.until_signal().await
}
