//! The shop on Telegram, by webhook: Telegram calls, and all replicas take calls.
//!
//! `TELEGRAM_TOKEN=… PUBLIC_URL=https://bot.example.org cargo run --example telegram_webhook`
//! listens at `LISTEN`, or `0.0.0.0:8080`; whatever ends your TLS sends the calls there. With
//! `REDIS_URL` start it as often as you like behind a load balancer that asks `/ready`.

use std::env;

use botmesh_core::prelude::*;
use botmesh_examples::backend::{backend, report};
use botmesh_examples::shop::shop;
use botmesh_telegram::Telegram;
use botmesh_webhook::{Server, WebhookRouter};

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let token = env::var("TELEGRAM_TOKEN")
        .map_err(|_| BotError::message("set TELEGRAM_TOKEN to the token from @BotFather"))?;
    let address = env::var("PUBLIC_URL")
        .map_err(|_| BotError::message("set PUBLIC_URL to where Telegram can call"))?;
    let mut telegram = Telegram::webhook(token, address);
    if let Ok(api) = env::var("TELEGRAM_API") {
        telegram = telegram.api(api);
    }
    let bot = backend(Bot::new(telegram.build()?)).await?;
    let running = shop(bot).start().await?;
    report(&running);
    let listen = env::var("LISTEN").unwrap_or_else(|_| "0.0.0.0:8080".into());
    let server =
        Server::new(WebhookRouter::new(running.webhooks()))?.start(listen.parse()?).await?;
    running.until_signal().await?;
    server.stop().await;
    Ok(())
}
