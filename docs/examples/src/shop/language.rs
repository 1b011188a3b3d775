//! The two languages of the shop.

use botmesh_core::prelude::*;

const ENGLISH: &str = include_str!("en.ftl");
const SPANISH: &str = include_str!("es.ftl");

/// What the shop says, in both languages.
pub(super) fn texts() -> Texts {
    #[expect(clippy::expect_used, reason = "constants of this program, which a test reads")]
    Texts::builtin()
        .add("en", ENGLISH)
        .and_then(|texts| texts.add("es", SPANISH))
        .expect("the texts of the shop are well-formed")
}

/// Offers both languages.
pub(super) async fn offer(ctx: Context) -> Result<(), BotError> {
    let offer = Reply::text(t("shop.language.which"))
        .button(Button::new("English", "language:en"))
        .button(Button::new("Español", "language:es"));
    ctx.reply(offer).await?;
    Ok(())
}

/// Changes the language at once, also in the middle of an order: `/en`, `/es`, or a button.
pub(super) async fn switch(ctx: Context, next: Next) -> Result<(), BotError> {
    let Some(language) = wanted(ctx.message()) else { return next.run(ctx).await };
    ctx.set_language(&Language::new(language)?).await?;
    ctx.reply(t("shop.language.changed")).await?;
    Ok(())
}

fn wanted(message: &Message) -> Option<&'static str> {
    let word = match &message.content {
        Content::Button(press) => press.payload.strip_prefix("language:")?,
        Content::Text(text) => text.trim().strip_prefix('/')?,
        _ => return None,
    };
    ["en", "es"].into_iter().find(|language| *language == word)
}
