//! The shop on Telegram, by long polling: no address of your own is needed.
//!
//! Ask @BotFather for a token, then `TELEGRAM_TOKEN=… cargo run --example telegram` and write
//! `/start` to your bot. With `REDIS_URL=redis://localhost:6379` start it as often as you like: one
//! of them is connected, and another takes its place when that one is killed.

use std::env;

use botmesh_core::prelude::*;
use botmesh_examples::backend::{backend, report};
use botmesh_examples::shop::shop;
use botmesh_telegram::Telegram;

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let token = env::var("TELEGRAM_TOKEN")
        .map_err(|_| BotError::message("set TELEGRAM_TOKEN to the token from @BotFather"))?;
    let mut telegram = Telegram::polling(token);
    // A Bot API server of your own, or one for tests.
    if let Ok(api) = env::var("TELEGRAM_API") {
        telegram = telegram.api(api);
    }
    let bot = backend(Bot::new(telegram.build()?)).await?;
    let running = shop(bot).start().await?;
    report(&running);
    running.until_signal().await
}
