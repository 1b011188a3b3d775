//! Which replica wakes a conversation, and what its timers leave alone.

use std::time::Duration;

use botmesh_core::coordination::{CoordinatorEvent, HandoverOutcome};
use botmesh_core::prelude::*;
use botmesh_core::provider::Provider as _;
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::{Flow, flow, question};

const GAVE_UP: &str = "I have not heard from you";

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn two(first: Duration, second: Duration) -> Flow<Vec<String>> {
    flow("two")
        .enter_on("go")
        .ask(question("one?").timeout(first), |s: &mut Vec<String>, a| {
            a.text().map(|it| s.push(it))
        })
        .ask(question("two?").timeout(second), |s, a| a.text().map(|it| s.push(it)))
        .say(|s| s.join(" "))
        .persistent()
}

fn resumed(world: &mut World) -> usize {
    let is_resumed = |event: &Event| {
        matches!(
            event,
            Event::Coordination(CoordinatorEvent::Handover {
                outcome: HandoverOutcome::Resumed,
                ..
            })
        )
    };
    world.events().iter().filter(|event| is_resumed(event)).count()
}

/// F12, D5: another replica that looked at the store earlier wakes up for a wait that is over. It
/// takes nothing from the owner, whose present wait ends at its moment.
#[tokio::test(start_paused = true)]
async fn a_wake_up_for_a_wait_that_is_over_takes_nothing_from_the_owner() {
    let mut world = World::replicas(2, |bot| bot.flow(two(seconds(100), seconds(100)))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    // The other one looks at the store twice a minute, and notes this wait.
    world.advance(seconds(90)).await;
    ana.on(0).says("1").await.hears("two?");
    // The other one's wake-up comes here.
    world.advance(seconds(98)).await;
    ana.hears_nothing();
    world.advance(seconds(3)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
    assert_eq!(resumed(&mut world), 0);
}

/// F12: a wake-up that came too early is set for the moment that the store tells, so a wait ends
/// in time also when its owner has died meanwhile.
#[tokio::test(start_paused = true)]
async fn a_wake_up_that_came_too_early_comes_again_in_time() {
    let mut world = World::replicas(2, |bot| bot.flow(two(seconds(100), seconds(100)))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    world.advance(seconds(90)).await;
    ana.on(0).says("1").await.hears("two?");
    world.advance(seconds(50)).await;
    world.crash_replica(0);
    world.advance(seconds(48)).await;
    ana.hears_nothing();
    world.advance(seconds(4)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
    ana.hears_nothing();
}

/// F12: a wait that was too short for the others to know of it, when its owner died, ends half a
/// minute late at most.
#[tokio::test(start_paused = true)]
async fn a_short_wait_ends_soon_when_its_owner_has_died() {
    let mut world = World::replicas(2, |bot| bot.flow(two(seconds(20), seconds(20)))).await;
    let mut ana = world.user("ana");
    world.advance(seconds(5)).await;
    ana.on(0).says("go").await.hears("one?");
    world.crash_replica(0);
    world.advance(seconds(20)).await;
    ana.hears_nothing();
    world.advance(seconds(32)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
}

/// F12: a copy that is out of date does not keep a replica from noticing that the wait which
/// another one began ends earlier.
#[tokio::test(start_paused = true)]
async fn an_outdated_copy_does_not_hide_an_earlier_moment() {
    let mut world = World::replicas(2, |bot| bot.flow(two(seconds(3600), seconds(400)))).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("1").await.hears("two?");
    world.crash_replica(1);
    world.advance(seconds(398)).await;
    ana.hears_nothing();
    world.advance(seconds(4)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
    ana.hears_nothing();
}

/// D5: a timer of a copy that is out of date does not end what another replica has in memory.
#[tokio::test(start_paused = true)]
async fn a_timer_of_an_outdated_copy_leaves_alone_what_another_replica_has_in_memory() {
    let world = World::replicas(2, |bot| {
        bot.flow(two(seconds(60), seconds(60))).when("order", enter("order")).conversation(
            "order",
            |c| async move {
                let item = c.ask("what?").await?.text()?;
                c.say(format!("one {item}")).await
            },
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    ana.on(1).says("1").await.hears("two?");
    ana.says("2").await.hears("1 2");
    ana.says("order").await.hears("what?");
    // The first replica's timer is due here, for a conversation that has ended.
    world.advance(seconds(70)).await;
    ana.hears_nothing();
    ana.says("tea").await.hears("one tea");
}

/// D5: a user who is silent is reminded by the replica that asked, whatever the others noted.
#[tokio::test(start_paused = true)]
async fn a_silent_user_is_reminded_whatever_other_replicas_noted() {
    let world = World::replicas(2, |bot| {
        bot.flow(
            flow::<Vec<String>>("two")
                .enter_on("go")
                .timeout(seconds(100))
                .ask("one?", |_, _| Ok(()))
                .ask("two?", |_, _| Ok(()))
                .idle(seconds(80), "still there?")
                .persistent(),
        )
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    world.advance(seconds(60)).await;
    ana.on(0).says("1").await.hears("two?");
    // The other one wakes up for the first question in between.
    world.advance(seconds(78)).await;
    ana.hears_nothing();
    world.advance(seconds(4)).await;
    ana.hears("still there?");
}

async fn led_world(wait: Duration) -> World {
    let mut capabilities = TestProvider::new().capabilities();
    capabilities.exclusive_session = true;
    World::coordinated(
        TestProvider::new().with_capabilities(capabilities),
        2,
        |coordination| coordination.provider_down(seconds(3)),
        move |bot| bot.flow(two(wait, wait)),
    )
    .await
}

/// The leader steps down, and the other one has the connection.
async fn change_the_leader(world: &World) {
    world.connection(0).interrupt();
    world.advance(seconds(4)).await;
    world.connection(0).restore();
    assert!(world.connection(1).is_connected());
}

/// E1, F12: where a platform is connected on one replica, that one ends the waits of its chats,
/// whichever has them in memory.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_on_the_replica_that_leads_by_then() {
    let mut world = led_world(seconds(100)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    change_the_leader(&world).await;
    world.advance(seconds(94)).await;
    ana.hears_nothing();
    world.advance(seconds(4)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
    world.advance(seconds(60)).await;
    ana.hears_nothing();
    let errors = world.events().into_iter().filter(|event| matches!(event, Event::Error(_)));
    assert_eq!(errors.count(), 0);
}

/// E1, F12: and it does so for a wait that ends before it looks at the store again.
#[tokio::test(start_paused = true)]
async fn whoever_is_elected_ends_the_waits_that_end_soon() {
    let world = led_world(seconds(10)).await;
    let mut ana = world.user("ana");
    ana.on(0).says("go").await.hears("one?");
    change_the_leader(&world).await;
    world.advance(seconds(8)).await;
    assert!(ana.hears_something().text.starts_with(GAVE_UP));
}
