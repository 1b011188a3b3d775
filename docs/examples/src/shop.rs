//! A small shop: buttons, a flow with a flow in it, a conversation, two languages.
//!
//! [`shop`] makes a bot of any definition, so it runs in the terminal, on every platform and in
//! tests alike.

mod catalogue;
mod customer;
mod language;
mod order;
mod pace;
mod tracking;

use std::time::Duration;

use botmesh_core::message::EventKind;
use botmesh_core::prelude::*;

use customer::Customer;

/// The shop, for whichever providers and store `bot` has.
pub fn shop(bot: Bot) -> Bot {
    let pace = pace::Pace::new(20, Duration::from_secs(10));
    bot.texts(language::texts())
        // Layers see every message first, also one that a conversation waits for.
        .layer(move |ctx, next| pace.clone().keep(ctx, next))
        .layer(language::switch)
        .when(event(EventKind::Started), welcome)
        .when(command("start"), welcome)
        .flow(order::order())
        .when(command("track"), enter("track"))
        .when(button("shop:track"), enter("track"))
        .conversation("track", tracking::track)
        .when(command("orders"), orders)
        .when(button("shop:orders"), orders)
        .when(command("language"), language::offer)
        .when(button("shop:language"), language::offer)
        .fallback(|ctx| async move { ctx.reply(t("shop.lost")).await })
        // For conversations; the flow has its own.
        .cancellable()
        .conversation_timeout(Duration::from_secs(600))
}

async fn welcome(ctx: Context) -> Result<(), BotError> {
    let menu = Reply::text(t("shop.welcome"))
        .button(Button::new(t("shop.menu.order"), "shop:order"))
        .button(Button::new(t("shop.menu.track"), "shop:track"))
        .button(Button::new(t("shop.menu.orders"), "shop:orders"))
        .button(Button::new(t("shop.menu.language"), "shop:language"));
    ctx.reply(menu).await?;
    Ok(())
}

/// Lists what this customer ever ordered, in whichever chat that was.
async fn orders(ctx: Context) -> Result<(), BotError> {
    let customer: Customer = ctx.user().await?;
    ctx.reply(t("shop.orders").with("count", customer.orders.len() as f64)).await?;
    for order in &customer.orders {
        ctx.reply(order.describe()).await?;
    }
    Ok(())
}
