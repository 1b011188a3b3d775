//! The smallest bot: `cargo run --example hello`, then type `hi`.

use botmesh_core::prelude::*;

#[tokio::main]
async fn main() -> Result<(), BotError> {
    Bot::new(Terminal::new())
        .when("hi", |ctx| async move { ctx.reply("Hello!").await })
        .fallback(|ctx| async move { ctx.reply(format!("You said: {}", ctx.text())).await })
        .run()
        .await
}
