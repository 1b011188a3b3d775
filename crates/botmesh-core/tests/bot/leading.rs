//! Providers that only one replica may connect.

use std::time::Duration;

use botmesh_core::bot::ProviderSession;
use botmesh_core::coordination::CoordinatorEvent;
use botmesh_core::prelude::*;
use botmesh_core::provider::{Capabilities, SendError};
use botmesh_core::testing::{TestProvider, World};

/// A platform that allows one session only.
pub(crate) fn exclusive() -> TestProvider {
    let mut all = botmesh_core::provider::Provider::capabilities(&TestProvider::new());
    all.exclusive_session = true;
    TestProvider::new().with_capabilities(all)
}

fn echo(bot: Bot) -> Bot {
    bot.fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
}

async fn world(session: ProviderSession) -> World {
    World::coordinated(
        exclusive(),
        2,
        move |coordination| {
            coordination.provider_session(session).provider_down(Duration::from_secs(10))
        },
        echo,
    )
    .await
}

fn connected(world: &World) -> Vec<bool> {
    (0..2).map(|replica| world.connection(replica).is_connected()).collect()
}

/// E1, E2: a provider with an exclusive session is connected on the leader alone.
#[tokio::test(start_paused = true)]
async fn an_exclusive_provider_is_connected_on_one_replica() {
    let world = world(ProviderSession::Auto).await;
    world.advance(Duration::from_secs(60)).await;
    assert_eq!(connected(&world), [true, false]);
}

/// E1: `leader` and `shared` force what `auto` decides.
#[tokio::test(start_paused = true)]
async fn leader_and_shared_force_the_session() {
    assert_eq!(connected(&world(ProviderSession::Shared).await), [true, true]);
    let plain = TestProvider::new().with_capabilities(Capabilities::default());
    let forced = World::coordinated(
        plain,
        2,
        |coordination| coordination.provider_session(ProviderSession::Leader),
        echo,
    )
    .await;
    assert_eq!(connected(&forced), [true, false]);
}

/// E3: on a standby `ready` stays pending and `send` fails with a typed error.
#[tokio::test(start_paused = true)]
async fn a_standby_is_not_ready_and_refuses_to_send() {
    let world = world(ProviderSession::Auto).await;
    let chat = world.platform().chat("ana");
    let ready = tokio::time::timeout(Duration::from_secs(300), world.running(1).ready()).await;
    assert!(ready.is_err());
    let refused = world.running(1).send(&chat, "news", None).await.unwrap_err();
    assert!(matches!(refused, SendError::NotLeader(_)), "{refused}");
    world.running(0).ready().await;
    world.running(0).send(&chat, "news", None).await.unwrap();
}

/// E5: a standby connects within the lease and two seconds after the leader was killed.
#[tokio::test(start_paused = true)]
async fn a_standby_connects_within_the_lease_after_the_leader_was_killed() {
    let mut world = world(ProviderSession::Auto).await;
    world.crash_replica(0);
    let begun = tokio::time::Instant::now();
    world.running(1).ready().await;
    assert!(begun.elapsed() <= Duration::from_secs(17), "{:?}", begun.elapsed());
    assert_eq!(connected(&world), [false, true]);
    let mut ana = world.user("ana");
    ana.on(1).says("hi").await.hears("hi");
}

/// E5: and within a second after the leader has stopped in order.
#[tokio::test(start_paused = true)]
async fn a_standby_connects_within_a_second_after_the_leader_has_stopped() {
    let mut world = world(ProviderSession::Auto).await;
    world.stop_replica(0).await;
    let begun = tokio::time::Instant::now();
    world.running(1).ready().await;
    assert!(begun.elapsed() <= Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// E4: a leader whose connection stays closed steps down, a standby connects, and the first
/// campaigns again.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_connection_stays_closed_steps_down() {
    let mut world = world(ProviderSession::Auto).await;
    world.connection(0).close("taken over");
    world.advance(Duration::from_secs(9)).await;
    assert_eq!(connected(&world), [false, false]);
    world.advance(Duration::from_secs(2)).await;
    assert_eq!(connected(&world), [false, true]);
    let events = world.events();
    let became = |wanted: fn(&CoordinatorEvent) -> bool| {
        events.iter().any(|event| matches!(event, Event::Coordination(it) if wanted(it)))
    };
    assert!(became(|it| matches!(it, CoordinatorEvent::Leader { .. })));
    assert!(became(|it| matches!(it, CoordinatorEvent::Follower { .. })));
}

/// E4: a leader that stepped down campaigns again, and leads when the other one is gone.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stepped_down_campaigns_again() {
    let mut world = world(ProviderSession::Auto).await;
    world.connection(0).interrupt();
    world.advance(Duration::from_secs(11)).await;
    assert!(world.connection(1).is_connected());
    world.connection(0).restore();
    world.advance(Duration::from_secs(60)).await;
    assert_eq!(connected(&world), [false, true]);
    world.stop_replica(1).await;
    world.running(0).ready().await;
    assert_eq!(connected(&world), [true, false]);
}

/// E4: an interruption shorter than `provider_down` changes nothing.
#[tokio::test(start_paused = true)]
async fn a_short_interruption_does_not_change_the_leader() {
    let world = world(ProviderSession::Auto).await;
    world.connection(0).interrupt();
    world.advance(Duration::from_secs(8)).await;
    world.connection(0).restore();
    world.advance(Duration::from_secs(60)).await;
    assert_eq!(connected(&world), [true, false]);
}

/// C6, E1: a leader that is cut off from the coordinator closes its connection before another
/// opens its own.
#[tokio::test(start_paused = true)]
async fn two_replicas_are_never_connected_at_once() {
    let world = world(ProviderSession::Auto).await;
    world.coordinator(0).faults().freeze();
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_ne!(connected(&world), [true, true]);
    }
    assert_eq!(connected(&world), [false, true]);
}
