//! Messages of processes that died.

use super::*;

/// A bot that notes each message when it begins, works for ten seconds, and replies.
fn slow(log: &Log) -> impl Fn(Bot) -> Bot + 'static {
    let log = log.clone();
    move |bot| {
        let log = log.clone();
        durable(bot).fallback(move |ctx| {
            let log = log.clone();
            async move {
                log.note(ctx.text());
                tokio::time::sleep(Duration::from_secs(10)).await;
                ctx.reply(format!("did {}", ctx.text())).await
            }
        })
    }
}

async fn say(world: &World, replica: usize, chat: &str, texts: &[&str]) {
    let chat = world.platform().chat(chat);
    for text in texts {
        world.connection(replica).says(&chat, *text).await.unwrap();
    }
}

/// G2, G7: what a process had accepted is processed after it was started again, in order, and what
/// comes meanwhile comes after it.
#[tokio::test(start_paused = true)]
async fn accepted_messages_are_processed_after_a_crash_in_order() {
    let log = Log::default();
    let mut world = World::new(slow(&log)).await;
    let mut ana = world.user("ana");
    say(&world, 0, "ana", &["a", "b", "c"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.crash();
    assert_eq!(log.take(), ["a"]);
    world.restart().await;
    say(&world, 0, "ana", &["d"]).await;
    world.advance(Duration::from_secs(90)).await;
    ana.hears("did a").hears("did b").hears("did c").hears("did d").hears_nothing();
    assert_eq!(log.take(), ["a", "b", "c", "d"]);
}

/// D1, G2, G11: when a replica dies, another one processes what it had accepted once its lease has
/// ended, in the chat's order.
#[tokio::test(start_paused = true)]
async fn another_replica_processes_what_a_dead_one_had_accepted() {
    let log = Log::default();
    let mut world = World::replicas(2, slow(&log)).await;
    let mut ana = world.user("ana");
    say(&world, 0, "ana", &["a", "b"]).await;
    say(&world, 1, "ana", &["c"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.crash_replica(0);
    world.advance(Duration::from_secs(90)).await;
    ana.hears("did a").hears("did b").hears("did c").hears_nothing();
    assert_eq!(log.take(), ["a", "a", "b", "c"]);
}

/// G3, D3: a step that was stopped because it took too long is processed again, and given up in
/// the end.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_stopped_is_processed_again() {
    let log = Log::default();
    let noted = log.clone();
    let world = World::replicas(1, move |bot| {
        let log = noted.clone();
        let slow = flow::<Names>("slow")
            .enter_on("go")
            .ask_with(
                |_| "How long?".to_owned(),
                |s, answer| {
                    s.names.push(answer.text()?);
                    Ok(())
                },
            )
            .do_(move |c| {
                log.note(c.read(|s: &Names| s.names.join("+")));
                let first = log.0.lock().len() == 1;
                async move {
                    if first {
                        tokio::time::sleep(Duration::from_secs(3600)).await;
                    }
                    Ok(())
                }
            })
            .say(|s| format!("after {}", s.names.join("+")))
            .persistent();
        durable(bot).flow(slow)
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("How long?");
    let began = tokio::time::Instant::now();
    ana.says("long").await.hears("after long").hears_nothing();
    assert!(began.elapsed() >= Duration::from_secs(60), "stopped after {:?}", began.elapsed());
    assert_eq!(log.take(), ["long", "long"]);
}

/// G7, A9: what could not be finished before a stop is finished by the next process.
#[tokio::test(start_paused = true)]
async fn what_a_stop_leaves_unfinished_is_finished_later() {
    let log = Log::default();
    let mut world = World::new(slow(&log)).await;
    let mut ana = world.user("ana");
    say(&world, 0, "ana", &["1", "2", "3", "4", "5"]).await;
    // The bot has 30 s to stop: time for three of them.
    assert!(world.stop().await > 0);
    world.restart().await;
    world.advance(Duration::from_secs(90)).await;
    for number in 1..=5 {
        ana.hears(&format!("did {number}"));
    }
    ana.hears_nothing();
}

/// G7: messages of many chats that a crash left are all processed, more than the bot may have in
/// work.
#[tokio::test(start_paused = true)]
async fn more_messages_than_may_be_in_work_are_recovered() {
    let log = Log::default();
    let noted = log.clone();
    let mut world = World::new(move |bot| {
        let log = noted.clone();
        durable(bot).max_in_work(8).max_waiting_per_chat(8).fallback(move |ctx| {
            let log = log.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                log.note(ctx.chat().chat().into_owned());
                Ok(())
            }
        })
    })
    .await;
    for number in 0..8 {
        say(&world, 0, &format!("c{number}"), &["x"]).await;
    }
    world.crash();
    assert_eq!(log.take(), Vec::<String>::new());
    world.restart().await;
    world.advance(Duration::from_secs(60)).await;
    let mut found = log.take();
    found.sort();
    assert_eq!(found, (0..8).map(|number| format!("c{number}")).collect::<Vec<_>>());
}

/// G7: a process that is alone takes up what an earlier one left within seconds.
#[tokio::test(start_paused = true)]
async fn a_process_that_is_alone_takes_up_what_was_left_within_seconds() {
    let log = Log::default();
    let mut world = World::new(slow(&log)).await;
    say(&world, 0, "ana", &["a"]).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.crash();
    world.restart().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(log.take(), ["a", "a"]);
}

/// F7, G3: with durability an answer of any size survives its replica, and what woke the
/// conversation is the next answer.
#[tokio::test(start_paused = true)]
async fn a_large_answer_is_not_asked_for_again() {
    let mut world = World::replicas(2, |bot| {
        let work = flow::<Names>("work").enter_on("go").do_(|c| async move {
            let first = c.ask("first?").await?.text()?;
            let second = c.ask("second?").await?.text()?;
            c.say(format!("{} and {second}", first.len())).await
        });
        durable(bot).flow(work.persistent())
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("first?");
    ana.says("x".repeat(100_000)).await.hears("second?");
    world.crash_replica(0);
    world.advance(LEASE * 2).await;
    ana.on(1).says("more").await.hears("100000 and more").hears_nothing();
}
