//! The places of a chat's messages in its queue across replicas.

use std::time::Duration;

use botmesh_core::testing::World;

/// C4, D4: messages whose places were lost with the session of their replica are handled in their
/// order and before a later one, whose place in the new session came first.
#[tokio::test(start_paused = true)]
async fn messages_that_lost_their_places_stay_before_a_later_one() {
    let mut world = World::replicas(2, |bot| {
        bot.when("slow", |_| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            Ok(())
        })
        .fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
    })
    .await;
    let chat = world.platform().chat("ana");
    let mut hears = world.platform().listen(&chat);
    let say = |replica: usize, text: &'static str| {
        let (connection, chat) = (world.connection(replica).clone(), chat.clone());
        async move {
            connection.says(&chat, text).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    say(1, "slow").await;
    for text in ["a", "b", "c"] {
        say(0, text).await;
    }
    world.coordinator(0).faults().freeze();
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.coordinator(0).faults().thaw();
    tokio::time::sleep(Duration::from_secs(5)).await;
    say(0, "d").await;
    for text in ["a", "b", "c", "d"] {
        let heard = tokio::time::timeout(Duration::from_secs(60), hears.next_message()).await;
        assert_eq!(heard.unwrap().text, text);
    }
    assert_eq!(world.errors(), [""; 0]);
}
