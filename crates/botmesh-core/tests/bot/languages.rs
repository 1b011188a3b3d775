//! In which language a chat is spoken to.

use botmesh_core::flow;
use botmesh_core::prelude::*;
use botmesh_core::testing::World;

const ENGLISH: &str = "All right, cancelled.";
const SPANISH: &str = "De acuerdo, cancelado.";

fn bot(bot: Bot) -> Bot {
    bot.layer(|ctx, next| async move {
        let Some(tag) = ctx.text().strip_prefix("lang ") else { return next.run(ctx).await };
        ctx.reply(t("core.conversation.cancelled")).await?;
        ctx.set_language(&Language::new(tag)?).await?;
        ctx.reply(t("core.conversation.cancelled")).await?;
        Ok(())
    })
    .flow(
        flow::<()>("ask")
            .enter_on("go")
            .ask(question("?").retry(9, t("core.conversation.cancelled")), |_, _| {
                Err(Invalid::unexplained())
            })
            .cancel_on(["enough"]),
    )
    .fallback(|ctx| async move { ctx.reply(t("core.conversation.cancelled")).await })
}

/// Says `text` as a platform delivers it that knows the language of the user's device.
async fn says_in(world: &World, user: &botmesh_core::testing::User, language: &str, text: &str) {
    let message = Message::new(user.chat().clone(), Content::Text(text.to_owned()))
        .with_language(Language::new(language).unwrap());
    world.platform().deliver(message).await.unwrap();
    world.rests().await;
}

/// A10: the language that was set holds from that moment, also for what the handler says next.
#[tokio::test(start_paused = true)]
async fn a_language_holds_as_soon_as_it_is_set() {
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    ana.says("lang es").await.hears(ENGLISH).hears(SPANISH);
    ana.says("lang en").await.hears(SPANISH).hears(ENGLISH);
}

/// A10: what the user chose wins over what the platform says about the user's device.
#[tokio::test(start_paused = true)]
async fn the_language_that_was_set_wins_over_that_of_the_messages() {
    let mut world = World::new(bot).await;
    let mut ana = world.user("ana");
    says_in(&world, &ana, "es", "x").await;
    ana.hears(SPANISH);
    says_in(&world, &ana, "es", "lang en").await;
    ana.hears(SPANISH).hears(ENGLISH);
    world.restart().await;
    says_in(&world, &ana, "es", "x").await;
    ana.hears(ENGLISH);
}

/// A10: a conversation that waits goes on in the language that was set, and else in that of the
/// last message.
#[tokio::test(start_paused = true)]
async fn a_waiting_conversation_follows_the_language() {
    let world = World::new(bot).await;
    let mut ana = world.user("ana");
    says_in(&world, &ana, "es", "go").await;
    says_in(&world, &ana, "es", "x").await;
    ana.hears("?").hears(SPANISH);
    says_in(&world, &ana, "en", "x").await;
    ana.hears(ENGLISH);
    says_in(&world, &ana, "en", "lang es").await;
    ana.hears(ENGLISH).hears(SPANISH);
    says_in(&world, &ana, "en", "x").await;
    ana.hears(SPANISH);
}
