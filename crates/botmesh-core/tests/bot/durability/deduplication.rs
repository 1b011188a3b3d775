//! Messages that come more than once, with and without the journal.

use botmesh_core::provider::Accepted;

use super::*;

fn repeating(
    durability: impl Fn() -> Durability + 'static,
    log: &Log,
) -> impl Fn(Bot) -> Bot + 'static {
    let log = log.clone();
    move |bot| {
        let log = log.clone();
        bot.durability(durability()).fallback(move |ctx| {
            let log = log.clone();
            async move {
                log.note(ctx.text());
                tokio::time::sleep(Duration::from_secs(30)).await;
                ctx.reply(format!("did {}", ctx.text())).await
            }
        })
    }
}

/// The same message comes three times to two replicas, whose handler takes 30 s: it is accepted at
/// once each time, and answered once.
async fn comes_three_times(durability: impl Fn() -> Durability + 'static) {
    let log = Log::default();
    let world = World::replicas(2, repeating(durability, &log)).await;
    let ana = world.user("ana");
    let message = Message::text(ana.chat().clone(), "work")
        .with_id(botmesh_core::MessageId::new("1").unwrap());
    let mut heard = world.platform().listen(ana.chat());
    let began = tokio::time::Instant::now();
    let mut accepted = Vec::new();
    for replica in [0, 1, 0] {
        accepted.push(world.connection(replica).deliver(message.clone()).await.unwrap());
    }
    assert_eq!(accepted, [Accepted::New, Accepted::Duplicate, Accepted::Duplicate]);
    assert!(began.elapsed() < Duration::from_millis(200), "accepted after {:?}", began.elapsed());
    assert_eq!(heard.next_message().await.text, "did work");
    assert_eq!(world.connection(1).deliver(message).await.unwrap(), Accepted::Duplicate);
    world.advance(Duration::from_secs(120)).await;
    assert!(std::iter::from_fn(|| heard.try_next()).all(|entry| entry.what.sent().is_none()));
    assert_eq!(log.take(), ["work"]);
}

/// G1: a message that comes to several replicas is accepted at once and processed once.
#[tokio::test(start_paused = true)]
async fn a_message_that_comes_three_times_to_two_replicas_is_answered_once() {
    comes_three_times(Durability::inbox_and_outbox).await;
}

/// G8: the same without the journal.
#[tokio::test(start_paused = true)]
async fn deduplication_alone_answers_once_too() {
    comes_three_times(Durability::deduplication).await;
}

/// G8: a message that could not be processed is new to the process that failed, too, also when its
/// turn was lost.
#[tokio::test(start_paused = true)]
async fn a_claim_that_was_given_up_is_new_to_the_same_process() {
    let tries = Log::default();
    let shared = tries.clone();
    let world = World::replicas(1, move |bot| {
        let tries = shared.clone();
        bot.durability(Durability::deduplication()).fallback(move |ctx| {
            tries.note(ctx.text());
            let tried = tries.0.lock().len();
            async move {
                match tried {
                    1 => return Err(BotError::message("no luck")),
                    2 => tokio::time::sleep(Duration::from_secs(60)).await,
                    _ => {}
                }
                ctx.reply("done").await
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    let message = Message::text(ana.chat().clone(), "work")
        .with_id(botmesh_core::MessageId::new("1").unwrap());
    let deliver = async || world.connection(0).deliver(message.clone()).await.unwrap();
    assert_eq!(deliver().await, Accepted::New);
    world.rests().await;
    assert_eq!(deliver().await, Accepted::New, "after an error");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(deliver().await, Accepted::Duplicate, "while it is processed");
    world.coordinator(0).faults().freeze();
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.coordinator(0).faults().thaw();
    world.rests().await;
    assert_eq!(deliver().await, Accepted::New, "after its turn was lost");
    world.rests().await;
    assert_eq!(deliver().await, Accepted::Duplicate, "when it is done");
    ana.hears("done").hears_nothing();
}

/// G8: a message that could not be processed is new when the platform sends it again.
#[tokio::test(start_paused = true)]
async fn a_claim_is_released_when_its_message_fails() {
    let tries = Log::default();
    let shared = tries.clone();
    let world = World::replicas(2, move |bot| {
        let tries = shared.clone();
        bot.durability(Durability::deduplication()).fallback(move |ctx| {
            tries.note(ctx.text());
            let first = tries.0.lock().len() == 1;
            async move {
                if first {
                    return Err(BotError::message("no luck"));
                }
                ctx.reply("done").await
            }
        })
    })
    .await;
    let mut ana = world.user("ana");
    let message = Message::text(ana.chat().clone(), "work")
        .with_id(botmesh_core::MessageId::new("1").unwrap());
    for (replica, wanted) in
        [(0, Accepted::New), (1, Accepted::New), (0, Accepted::Duplicate), (1, Accepted::Duplicate)]
    {
        let accepted = world.connection(replica).deliver(message.clone()).await.unwrap();
        assert_eq!(accepted, wanted, "on replica {replica}");
        world.rests().await;
    }
    ana.hears("done").hears_nothing();
}
