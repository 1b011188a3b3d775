//! Two replicas on Redis behind a load balancer.

use botmesh_core::coordination::{AcquireTurn, Coordinator};
use botmesh_core::{ChatKey, ProviderId};
use botmesh_redis_store::RedisStore;
use botmesh_telegram::testing::FakeTelegram;

use crate::balancer::Balancer;
use crate::process::{Replica, free_address, redis};
use crate::story::play;

/// F1, C3: whichever replica a call comes to, the conversation goes on, and it goes on when one of
/// them is killed between two answers: nothing is asked or answered twice. What a replica had
/// accepted and not handled when it died would be lost without a journal, and a question whose asking
/// was not noted yet is asked once more, both of which is documented: so it is killed when its turn
/// is over.
#[tokio::test]
async fn a_conversation_goes_on_over_replicas_when_one_is_killed() {
    let Some(settings) = redis("webhook") else { return };
    let platform = FakeTelegram::start().await.unwrap();
    let addresses = [free_address(), free_address()];
    let balancer = Balancer::start(addresses.to_vec()).await;
    let url = balancer.url();
    let start = |address: &str| {
        let mut all: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        all.extend([("PUBLIC_URL", url.as_str()), ("LISTEN", address)]);
        Replica::start("telegram_webhook", &platform, &all)
    };
    let mut replicas = vec![start(&addresses[0]), start(&addresses[1])];
    let [(_, redis), (_, prefix)] = &settings;
    let store = RedisStore::connect(redis.as_str()).prefix(prefix).await.unwrap();
    let coordinator: Box<dyn Coordinator> = Box::new(store.coordinator().build().unwrap());
    coordinator.start().await.unwrap();
    let ana = platform.private(42);
    play(&ana, async |step| {
        if matches!(step, 5 | 8) {
            the_turn_ends(&*coordinator).await;
        }
        if step == 5 {
            let given = balancer.given();
            assert!(given.iter().all(|count| *count > 0), "one replica got all: {given:?}");
            replicas.remove(0).dies().await;
        }
        if step == 7 {
            replicas.push(start(&addresses[0]));
        }
        if step == 8 {
            replicas.remove(0).dies().await;
        }
    })
    .await;
    coordinator.stop().await.unwrap();
}

/// Waits until no replica works on the chat any more: what was said is noted before a turn ends.
/// Whoever asks for a turn gets it when all that was asked for before is over.
async fn the_turn_ends(coordinator: &dyn Coordinator) {
    let telegram = ProviderId::new("telegram").unwrap();
    let chat = ChatKey::new(&telegram, "42").unwrap();
    let ticket = coordinator.reserve(&chat).await.unwrap();
    drop(coordinator.acquire_turn(ticket, AcquireTurn::default()).await.unwrap());
}
