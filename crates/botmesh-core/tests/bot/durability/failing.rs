//! Messages that cannot be processed.

use std::sync::atomic::{AtomicU32, Ordering};

use botmesh_core::Event;

use super::*;

/// A bot that fails on `poison` and repeats everything else.
fn failing(log: &Log) -> impl Fn(Bot) -> Bot + 'static {
    let log = log.clone();
    move |bot| {
        let (on_poison, on_else) = (log.clone(), log.clone());
        durable(bot)
            .when("poison", move |_| {
                on_poison.note("poison");
                async { Err::<(), _>(BotError::message("it is poison")) }
            })
            .fallback(move |ctx| {
                let log = on_else.clone();
                async move {
                    log.note(ctx.text());
                    ctx.reply(ctx.text().to_owned()).await
                }
            })
    }
}

fn dead_letters(events: Vec<Event>) -> Vec<(u32, String)> {
    let letters = events.into_iter().filter_map(|event| match event {
        Event::DeadLetter { attempts, error, .. } => Some((attempts, error.to_string())),
        _ => None,
    });
    letters.collect()
}

/// G5: a message that fails is tried five times, then it is a dead letter and its chat goes on;
/// other chats go on all the time.
#[tokio::test(start_paused = true)]
async fn a_message_that_keeps_failing_becomes_a_dead_letter_and_its_chat_goes_on() {
    let log = Log::default();
    let mut world = World::new(failing(&log)).await;
    let mut ana = world.user("ana");
    ana.says_at_once(["poison", "after"]).await.hears("after").hears_nothing();
    assert_eq!(log.take(), ["poison", "poison", "poison", "poison", "poison", "after"]);
    assert_eq!(dead_letters(world.events()), [(5, "it is poison".to_owned())]);
    let letters = world.running(0).dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].message.as_ref().and_then(Message::body), Some("poison"));
    assert_eq!((letters[0].attempts, letters[0].error.as_str()), (5, "it is poison"));
}

/// G5: a dead letter can be replayed, once.
#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_replayed() {
    let fails = Arc::new(AtomicU32::new(5));
    let shared = Arc::clone(&fails);
    let world = World::new(move |bot| {
        let fails = Arc::clone(&shared);
        durable(bot).fallback(move |ctx| {
            let left = fails.load(Ordering::SeqCst);
            fails.store(left.saturating_sub(1), Ordering::SeqCst);
            async move {
                if left > 0 {
                    return Err(BotError::message("not yet"));
                }
                ctx.reply("done").await
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("work").await.hears_nothing();
    let letters = world.running(0).dead_letters(None, 10).await.unwrap();
    assert!(world.running(0).replay(&letters[0]).await.unwrap());
    assert!(!world.running(0).replay(&letters[0]).await.unwrap());
    world.advance(Duration::from_millis(1)).await;
    ana.hears("done").hears_nothing();
    assert_eq!(world.running(0).dead_letters(None, 10).await.unwrap(), []);
}

/// A4, G5: a panic is a failed attempt.
#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_attempt() {
    let mut world = World::new(|bot| {
        durable(bot).fallback(|ctx| async move {
            assert_ne!(ctx.text(), "poison", "a bug");
            ctx.reply("fine").await
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says_at_once(["poison", "hi"]).await.hears("fine").hears_nothing();
    assert_eq!(dead_letters(world.events()).len(), 1);
}

/// G5, C6: a message that kills its process again and again is given up as well.
#[tokio::test(start_paused = true)]
async fn a_message_that_kills_its_process_becomes_a_dead_letter() {
    let mut world = World::new(|bot| {
        durable(bot).fallback(|ctx| async move {
            if ctx.text() == "poison" {
                std::future::pending::<()>().await;
            }
            ctx.reply(ctx.text().to_owned()).await
        })
    })
    .await;
    let ana = world.platform().chat("ana");
    let mut hears = world.platform().listen(&ana);
    world.platform().says(&ana, "poison").await.unwrap();
    world.platform().says(&ana, "after").await.unwrap();
    for _ in 0..7 {
        tokio::time::sleep(LEASE * 2).await;
        world.crash();
        world.restart().await;
    }
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(hears.next_message().await.text, "after");
    let letters = world.running(0).dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].error.contains("begun 5 times"), "{}", letters[0].error);
}

/// G5: what passes by itself, as a platform that is away, does not use up attempts.
#[tokio::test(start_paused = true)]
async fn a_platform_that_is_away_uses_up_no_attempts() {
    let mut world =
        World::new(|bot| durable(bot).fallback(|ctx| async move { ctx.reply("there").await }))
            .await;
    let platform = world.platform().clone();
    let ana = platform.chat("ana");
    let mut hears = platform.listen(&ana);
    platform.says(&ana, "hello").await.unwrap();
    platform.interrupt();
    tokio::time::sleep(Duration::from_secs(600)).await;
    platform.restore();
    world.advance(Duration::from_secs(61)).await;
    assert_eq!(hears.next_message().await.text, "there");
    assert_eq!(dead_letters(world.events()), []);
}

/// G3: a step of a persistent flow that fails is tried again from where its checkpoint is, and the
/// conversation stands there when it was given up.
#[tokio::test(start_paused = true)]
async fn a_failing_step_is_tried_again_and_the_flow_stays_where_it_was() {
    let tries = Arc::new(AtomicU32::new(0));
    let shared = Arc::clone(&tries);
    let world = World::new(move |bot| {
        let tries = Arc::clone(&shared);
        let pay = flow::<Names>("pay")
            .enter_on("go")
            .ask_with(
                |_| "Card?".to_owned(),
                |s, answer| {
                    s.names.push(answer.text()?);
                    Ok(())
                },
            )
            .do_(move |_| {
                let fails = tries.fetch_add(1, Ordering::SeqCst) < 7;
                let paid = if fails { Err(BotError::message("the bank is away")) } else { Ok(()) };
                std::future::ready(paid)
            })
            .say(|s| format!("paid by {}", s.names.join("+")))
            .persistent();
        durable(bot).flow(pay)
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("Card?");
    ana.says("red").await.hears_nothing();
    assert_eq!(tries.load(Ordering::SeqCst), 5);
    assert_eq!(world.running(0).dead_letters(None, 10).await.unwrap().len(), 1);
    ana.says("blue").await.hears("paid by blue").hears_nothing();
    assert_eq!(tries.load(Ordering::SeqCst), 8);
}

/// G4: a handler has a key that is the same in each attempt at a message, and another for the next.
#[tokio::test(start_paused = true)]
async fn each_message_has_one_key_in_all_its_attempts() {
    let keys = Log::default();
    let noted = keys.clone();
    let world = World::new(move |bot| {
        let keys = noted.clone();
        durable(bot).fallback(move |ctx| {
            keys.note(ctx.idempotency_key().unwrap_or_default());
            let fails = keys.0.lock().len() < 3;
            async move { if fails { Err(BotError::message("not yet")) } else { Ok(()) } }
        })
    })
    .await;
    world.user("ana").says_at_once(["one", "two"]).await;
    let keys = keys.take();
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && !keys[0].is_empty(), "{keys:?}");
    assert!(keys.len() == 4 && keys[3] != keys[0], "{keys:?}");
}

/// G5, C6: an attempt whose turn was lost does not count: a replica that often loses its leases
/// gives up no message.
#[tokio::test(start_paused = true)]
async fn attempts_whose_turn_was_lost_do_not_count() {
    let mut world = World::replicas(1, |bot| {
        durable(bot).fallback(|ctx| async move {
            tokio::time::sleep(Duration::from_secs(40)).await;
            ctx.reply("done").await
        })
    })
    .await;
    let ana = world.platform().chat("ana");
    let mut hears = world.platform().listen(&ana);
    world.platform().says(&ana, "work").await.unwrap();
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.coordinator(0).faults().freeze();
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.coordinator(0).faults().thaw();
    }
    let heard = tokio::time::timeout(Duration::from_secs(600), hears.next_message()).await;
    assert_eq!(dead_letters(world.events()), []);
    assert_eq!(heard.unwrap().text, "done");
}
