//! Turns and inbox that are one backend: a message is taken in with its turn, and ended with it.

use botmesh_core::bot::Coordination;
use botmesh_core::testing::{
    CoordinationFaults, CrashPoints, CrashingStore, MemoryCoordinationHub, MemoryCoordinator,
    TestProvider,
};
use botmesh_core::{MemoryStore, MessageId, RunningBot};

use super::*;

/// One replica over a store whose calls are counted.
struct Replica {
    platform: TestProvider,
    points: CrashPoints,
    faults: CoordinationFaults,
    running: RunningBot,
}

impl Replica {
    async fn start(hub: &MemoryCoordinationHub, define: impl FnOnce(Bot) -> Bot) -> Self {
        let points = CrashPoints::never();
        let store = MemoryStore::new().as_shared();
        let store = CrashingStore::new(Arc::new(store), points.clone());
        let platform = TestProvider::new();
        let builder = MemoryCoordinator::builder(hub).journaling(store.clone());
        let coordinator = Arc::new(builder.build());
        let faults = coordinator.faults().clone();
        let bot = durable(Bot::new(platform.clone()).store(store));
        let bot = define(bot).coordination(Coordination::new(coordinator));
        let running = bot.start().await.unwrap();
        running.ready().await;
        Self { platform, points, faults, running }
    }

    /// Delivers a message with this id.
    async fn deliver(&self, id: &str, text: &str) {
        let id = MessageId::new(id).unwrap();
        let message = Message::text(self.platform.chat("ana"), text).with_id(id);
        self.platform.deliver(message).await.unwrap();
    }

    /// Waits until the bot has sent so many messages, and answers all.
    async fn heard(&self, count: usize) -> Vec<String> {
        let chat = self.platform.chat("ana");
        let sent = || -> Vec<String> {
            let entries = self.platform.transcript_of(&chat).into_iter();
            entries.filter_map(|entry| Some(entry.what.sent()?.text.to_string())).collect()
        };
        let enough = async {
            while sent().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), enough).await.unwrap();
        sent()
    }
}

fn echo(bot: Bot) -> Bot {
    bot.fallback(|ctx| async move { ctx.reply(format!("did {}", ctx.text())).await })
}

/// G9: with replicas a message of a free chat costs two requests: one before it is processed, one
/// after it.
#[tokio::test(start_paused = true)]
async fn a_message_costs_two_requests() {
    let replica = Replica::start(&MemoryCoordinationHub::new(), echo).await;
    replica.deliver("0", "warm").await;
    replica.heard(1).await;
    for number in 1..=3 {
        // Over before the heartbeat that comes with it.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let before = (replica.faults.requests(), replica.points.passed());
        replica.deliver(&number.to_string(), "hi").await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(replica.heard(number + 1).await.len(), number + 1);
        assert_eq!(replica.faults.requests() - before.0, 2, "requests to the backend");
        // Admission, beginning and end: two points each, and nothing beside those two requests.
        assert_eq!(replica.points.passed() - before.1, 6, "calls to the store");
    }
    assert_eq!(replica.running.stop().await, 0);
}

/// G7, G9: whatever gets lost of the two requests, the message is processed once.
#[tokio::test(start_paused = true)]
async fn a_request_or_an_answer_that_is_lost_changes_nothing() {
    let hub = MemoryCoordinationHub::new();
    let slot: Arc<Mutex<Option<CoordinationFaults>>> = Arc::default();
    let shared = Arc::clone(&slot);
    let replica = Replica::start(&hub, move |bot| {
        bot.fallback(move |ctx| {
            let faults = shared.lock().clone();
            async move {
                ctx.reply(format!("did {}", ctx.text())).await?;
                match (ctx.text(), faults) {
                    ("end request", Some(faults)) => faults.lose_requests(1),
                    ("end answer", Some(faults)) => faults.lose_replies(1),
                    ("end refused", Some(faults)) => faults.refuse(1),
                    _ => {}
                }
                Ok(())
            }
        })
    })
    .await;
    *slot.lock() = Some(replica.faults.clone());
    let mut wanted = Vec::new();
    let said =
        ["plain", "request", "answer", "refused", "end request", "end answer", "end refused"];
    for (number, text) in said.into_iter().cycle().take(3 * said.len()).enumerate() {
        match text {
            "request" => replica.faults.lose_requests(1),
            "answer" => replica.faults.lose_replies(1),
            "refused" => replica.faults.refuse(1),
            _ => {}
        }
        replica.deliver(&number.to_string(), text).await;
        wanted.push(format!("did {text}"));
        assert_eq!(replica.heard(wanted.len()).await, wanted, "message {number}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(replica.heard(wanted.len()).await, wanted);
    assert_eq!(replica.running.stop().await, 0);
}

/// A3, G2, G9: messages that come while an earlier one of the chat is under way are processed
/// behind it in their order, and wakes of the chat keep their place.
#[tokio::test(start_paused = true)]
async fn messages_that_come_together_are_processed_in_order() {
    let replica = Replica::start(&MemoryCoordinationHub::new(), |bot| {
        bot.fallback(|ctx| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            ctx.reply(format!("did {}", ctx.text())).await
        })
    })
    .await;
    let replica = &replica;
    let numbers: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    for round in 0..3 {
        replica.faults.delay(Duration::from_millis(round * 7));
        let delivered = numbers.iter().map(|number| async move {
            replica.deliver(&format!("{round}-{number}"), number).await;
        });
        futures_util::future::join_all(delivered).await;
        let heard = replica.heard(20 * (usize::try_from(round).unwrap() + 1)).await;
        let wanted: Vec<String> = numbers.iter().map(|number| format!("did {number}")).collect();
        assert_eq!(heard[heard.len() - 20..], wanted);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// G3, G9: what goes on after the handler has nothing to say once the turn is on its way back.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_under_a_turn_that_ends() {
    let late: Arc<Mutex<Option<botmesh_core::Context>>> = Arc::default();
    let kept = Arc::clone(&late);
    let replica = Replica::start(&MemoryCoordinationHub::new(), move |bot| {
        bot.fallback(move |ctx| {
            *kept.lock() = Some(ctx.clone());
            async move { ctx.reply("in time").await }
        })
    })
    .await;
    replica.faults.delay(Duration::from_millis(500));
    replica.deliver("1", "hi").await;
    replica.heard(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let context = late.lock().clone().unwrap();
    assert!(context.reply("late").await.is_err(), "sent under a turn that is on its way back");
    replica.faults.delay(Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(replica.heard(1).await, ["in time"]);
}
