//! Where is my order? An ordinary function that asks.

use botmesh_core::conversation::Conversation;
use botmesh_core::prelude::*;

use super::customer::{Customer, Placed};

/// How many orders are offered as buttons.
const OFFERED: usize = 3;

pub(super) async fn track(c: Conversation) -> Result<(), BotError> {
    let customer: Customer = c.user().await?;
    if customer.orders.is_empty() {
        c.say(t("shop.track.none")).await?;
        return Ok(());
    }
    let latest = customer.orders.iter().rev().take(OFFERED);
    let which = question(t("shop.track.which"))
        .buttons(latest.map(|order| order.number.to_string()))
        .retry(3, t("shop.track.unknown"));
    let order = c
        .ask_for(which, |answer| customer.order(answer.parse()?).ok_or_else(Invalid::unexplained))
        .await?;
    c.typing().await?;
    let stage = c.run("ask the courier", || ask_courier(order)).await?;
    c.say(t("shop.track.stage").with("number", order.number.to_string()).with("stage", stage))
        .await?;
    Ok(())
}

/// A real shop would call the courier's server here.
async fn ask_courier(order: &Placed) -> Result<&'static str, BotError> {
    Ok(if order.address.is_some() { "riding" } else { "waiting" })
}
