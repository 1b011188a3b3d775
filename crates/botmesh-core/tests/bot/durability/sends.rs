//! Sends that are not made again.

use std::sync::atomic::{AtomicU32, Ordering};

use botmesh_core::Event;
use botmesh_core::bot::{Uncertain, UncertainOutcome};
use botmesh_core::provider::{Capabilities, ChoiceLimits};
use botmesh_core::testing::TestProvider;

use super::*;

/// A bot that replies three times and fails in the first `failures` attempts in between.
fn thrice(
    durability: impl Fn() -> Durability + 'static,
    failures: u32,
) -> impl Fn(Bot) -> Bot + 'static {
    let fails = Arc::new(AtomicU32::new(failures));
    move |bot| {
        let fails = Arc::clone(&fails);
        bot.durability(durability()).fallback(move |ctx| {
            let fails = Arc::clone(&fails);
            async move {
                ctx.reply("one").await?;
                ctx.reply("two").await?;
                if fails
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |f| f.checked_sub(1))
                    .is_ok()
                {
                    return Err(BotError::message("not yet"));
                }
                ctx.reply("three").await
            }
        })
    }
}

/// A platform that recognises a send that comes again.
fn knowing_keys() -> TestProvider {
    let mut capabilities = Capabilities::default();
    capabilities.idempotent_send = true;
    capabilities.buttons = Some(ChoiceLimits::NONE);
    TestProvider::new().with_capabilities(capabilities)
}

fn outcomes(events: Vec<Event>) -> Vec<UncertainOutcome> {
    let outcomes = events.into_iter().filter_map(|event| match event {
        Event::Uncertain { outcome, .. } => Some(outcome),
        _ => None,
    });
    outcomes.collect()
}

/// G4: what an attempt that failed has sent is not sent again by the next one.
#[tokio::test(start_paused = true)]
async fn an_attempt_does_not_send_again_what_the_one_before_sent() {
    let mut world = World::new(thrice(Durability::inbox_and_outbox, 3)).await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("one").hears("two").hears("three").hears_nothing();
    assert_eq!(outcomes(world.events()), []);
}

/// G4: with a platform that recognises a send, a crash repeats none; each has a key of its own.
#[tokio::test(start_paused = true)]
async fn a_platform_that_knows_keys_gets_each_send_once() {
    let platform = knowing_keys();
    let mut world = World::on(platform, crashing(Durability::inbox_and_outbox)).await;
    let mut ana = world.user("ana");
    crash_after(&mut world, &ana, 2).await;
    ana.hears("one").hears("two").hears("three").hears_nothing();
    assert_eq!(outcomes(world.events()), []);
}

/// A bot whose first two attempts stand still after the second send.
fn crashing(durability: impl Fn() -> Durability + 'static) -> impl Fn(Bot) -> Bot + 'static {
    let starts = AtomicU32::new(0);
    move |bot| {
        let stands = starts.fetch_add(1, Ordering::SeqCst) < 1;
        bot.durability(durability()).fallback(move |ctx| async move {
            ctx.reply("one").await?;
            ctx.reply("two").await?;
            if stands {
                std::future::pending::<()>().await;
            }
            ctx.reply("three").await
        })
    }
}

async fn crash_after(world: &mut World, ana: &botmesh_core::testing::User, sends: usize) {
    let mut hears = world.platform().listen(ana.chat());
    world.platform().says(ana.chat(), "go").await.unwrap();
    for _ in 0..sends {
        hears.next_message().await;
    }
    world.crash();
    world.restart().await;
    world.advance(LEASE * 2).await;
}

/// G4, G10: with a platform that recognises nothing, a crash repeats one send at most, and that is
/// told.
#[tokio::test(start_paused = true)]
async fn a_crash_repeats_one_send_at_most_and_tells_it() {
    let mut world = World::new(crashing(Durability::inbox_and_outbox)).await;
    let mut ana = world.user("ana");
    crash_after(&mut world, &ana, 2).await;
    ana.hears("one").hears("two").hears("two").hears("three").hears_nothing();
    assert_eq!(outcomes(world.events()), [UncertainOutcome::Resent]);
}

/// G10: a send that may have arrived is left out where the bot was told to.
#[tokio::test(start_paused = true)]
async fn an_uncertain_send_is_skipped_where_that_was_chosen() {
    let durability = || Durability::inbox_and_outbox().uncertain(Uncertain::Skip);
    let mut world = World::new(crashing(durability)).await;
    let mut ana = world.user("ana");
    crash_after(&mut world, &ana, 2).await;
    ana.hears("one").hears("two").hears("three").hears_nothing();
    assert_eq!(outcomes(world.events()), [UncertainOutcome::Skipped]);
}

/// G10: a send whose answer got lost is uncertain, and a function can find out whether it arrived.
#[tokio::test(start_paused = true)]
async fn a_function_finds_out_whether_a_send_has_arrived() {
    let asked = Log::default();
    let shared = asked.clone();
    let mut world = World::new(move |bot| {
        let asked = shared.clone();
        let policy = Uncertain::reconcile(move |send| {
            asked.note(send.text);
            async { Ok(true) }
        });
        let durability = Durability::inbox_and_outbox().uncertain(policy);
        bot.durability(durability).fallback(|ctx| async move { ctx.reply("once").await })
    })
    .await;
    let mut ana = world.user("ana");
    world.platform().lose_next_receipt();
    ana.says("go").await.hears("once").hears_nothing();
    assert_eq!(asked.take(), ["once"]);
    assert_eq!(outcomes(world.events()), [UncertainOutcome::Arrived]);
}

/// G4, A5: a question that was asked before a crash is not asked again, and its buttons still
/// answer it.
#[tokio::test(start_paused = true)]
async fn the_buttons_of_a_question_asked_before_a_crash_stay_good() {
    let starts = Arc::new(AtomicU32::new(0));
    let platform = knowing_keys();
    let mut world = World::on(platform, move |bot| {
        let stands = starts.fetch_add(1, Ordering::SeqCst) == 0;
        let order = flow::<Names>("order")
            .menu("Which?", [("Tea", "tea"), ("Coffee", "coffee")])
            .label("tea")
            .end_with("tea it is")
            .label("coffee")
            .end_with("coffee it is")
            .persistent();
        durable(bot).flow(order).when("go", botmesh_core::enter("order")).layer(
            move |ctx, next| async move {
                let done = next.run(ctx).await;
                if stands {
                    std::future::pending::<()>().await;
                }
                done
            },
        )
    })
    .await;
    let mut ana = world.user("ana");
    crash_after(&mut world, &ana, 1).await;
    ana.hears("Which?").hears_nothing();
    ana.presses("Coffee").await.hears("coffee it is").hears_nothing();
}
