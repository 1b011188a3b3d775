//! What jobs and the program itself send, and what comes of it when it is sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::bot::Bot;
use botmesh_core::prelude::*;
use botmesh_core::provider::Capabilities;
use botmesh_core::runtime::JobContext;
use botmesh_core::schedule::{Retry, durable, plain};
use botmesh_core::testing::provider::Happening;
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::time::{Clock, Timestamp};

const NOON: Timestamp = Timestamp::from_millis(1_800_014_400_000);
const PERIOD: Duration = Duration::from_secs(60);

/// A platform that recognises a send that comes again.
fn knowing_keys() -> TestProvider {
    let mut capabilities = Capabilities::default();
    capabilities.idempotent_send = true;
    TestProvider::new().with_capabilities(capabilities)
}

/// The keys of all sends to the chat, in order.
fn keys(world: &World, chat: &ChatKey) -> Vec<Option<String>> {
    let all = world.platform().transcript_of(chat).into_iter();
    let keys = all.filter_map(|entry| match entry.what {
        Happening::Sent { options, .. } => Some(options.idempotency_key),
        _ => None,
    });
    keys.collect()
}

/// Sends two words to the one chat and one to the other, in an order that depends on the attempt.
async fn send_all(job: &JobContext, ana: &ChatKey, bo: &ChatKey) -> Result<(), BotError> {
    let odd = job.attempt() % 2 == 1;
    if odd {
        job.send(bo, "hello", None).await?;
    }
    job.send(ana, "one", None).await?;
    job.clone().send(ana, "two", None).await?;
    if !odd {
        job.send(bo, "hello", None).await?;
    }
    Ok(())
}

/// H1, G4: an occurrence that fails and is run again sends nothing twice to a platform that knows
/// keys, also in another order of the chats; the next occurrence is another one.
#[tokio::test(start_paused = true)]
async fn an_occurrence_that_is_run_again_sends_nothing_twice() {
    let platform = knowing_keys();
    let (one, other) = (platform.chat("ana"), platform.chat("bo"));
    let clock = Clock::following_tokio(NOON);
    let world = World::on(platform, move |bot: Bot| {
        let (one, other) = (one.clone(), other.clone());
        let retry = Retry::new(3).first(Duration::from_secs(1));
        let bot = bot.every(PERIOD, durable("report").retry(retry), move |job| {
            let (one, other) = (one.clone(), other.clone());
            async move {
                send_all(&job, &one, &other).await?;
                if job.attempt() < 3 { Err(BotError::message("no paper")) } else { Ok(()) }
            }
        });
        bot.scheduler_clock(clock.clone())
    })
    .await;
    let (mut ana, mut bo) = (world.user("ana"), world.user("bo"));
    world.advance(PERIOD + Duration::from_secs(10)).await;
    ana.hears("one").hears("two").hears_nothing();
    bo.hears("hello").hears_nothing();
    world.advance(PERIOD).await;
    ana.hears("one").hears("two").hears_nothing();
    bo.hears("hello").hears_nothing();
}

/// H1, G4: nor does one whose process died between its sends and its end.
#[tokio::test(start_paused = true)]
async fn an_occurrence_whose_process_died_sends_nothing_twice() {
    let platform = knowing_keys();
    let chat = platform.chat("ana");
    let clock = Clock::following_tokio(NOON);
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let mut world = World::on(platform, move |bot: Bot| {
        let (chat, starts) = (chat.clone(), Arc::clone(&counted));
        let bot = bot.every(PERIOD, durable("report"), move |job| {
            let (chat, starts) = (chat.clone(), Arc::clone(&starts));
            async move {
                job.send(&chat, "one", None).await?;
                // The first process dies here.
                if starts.fetch_add(1, Ordering::SeqCst) == 0 {
                    std::future::pending::<()>().await;
                }
                Ok(job.send(&chat, "two", None).await?)
            }
        });
        bot.scheduler_clock(clock.clone())
    })
    .await;
    let mut ana = world.user("ana");
    world.advance(PERIOD).await;
    ana.hears("one").hears_nothing();
    world.crash();
    world.restart().await;
    world.advance(PERIOD / 2).await;
    assert_eq!(starts.load(Ordering::SeqCst), 2);
    ana.hears("two").hears_nothing();
}

/// H1: a plain job runs on every replica, and each of them is heard.
#[tokio::test(start_paused = true)]
async fn what_plain_jobs_send_has_no_key() {
    let platform = knowing_keys();
    let chat = platform.chat("ana");
    let clock = Clock::following_tokio(NOON);
    let told = chat.clone();
    let world = World::coordinated(
        platform,
        2,
        |coordination| coordination,
        move |bot: Bot| {
            let chat = told.clone();
            let bot = bot.every(PERIOD, plain("here"), move |job| {
                let chat = chat.clone();
                async move { Ok(job.send(&chat, "here", None).await?) }
            });
            bot.scheduler_clock(clock.clone())
        },
    )
    .await;
    world.advance(PERIOD).await;
    assert_eq!(keys(&world, &chat), [None, None]);
}

/// G4: what the program sends with a key is sent once to a platform that knows keys, and the key
/// is given to it as it is.
#[tokio::test(start_paused = true)]
async fn a_send_with_a_key_of_the_program_is_made_once() {
    let platform = knowing_keys();
    let chat = platform.chat("ana");
    let mut world = World::on(platform, |bot: Bot| bot).await;
    let mut ana = world.user("ana");
    for _ in 0..2 {
        let running = world.running(0);
        let first = running.send_once("order-7", &chat, "Your order is on its way.", None).await;
        let again = running.send_once("order-7", &chat, "Your order is on its way.", None).await;
        assert_eq!(first.unwrap(), again.unwrap());
        world.crash();
        world.restart().await;
    }
    world.running(0).send_once("order-8", &chat, "And the next.", None).await.unwrap();
    ana.hears("Your order is on its way.").hears("And the next.").hears_nothing();
    assert_eq!(keys(&world, &chat), [Some("order-7".into()), Some("order-8".into())]);
}
