//! Two replicas on Redis behind a load balancer, which lose nothing when one is killed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use botmesh_telegram::testing::{FakeChat, FakeTelegram};

use crate::balancer::Balancer;
use crate::process::{PATIENCE, Replica, free_address, redis};
use crate::story::{STORY, plain};

/// The steps in whose middle a replica is killed: a question, and the one that places the order.
const KILLS: [usize; 2] = [4, 8];

/// The answer to what means nothing to the shop.
const LOST: &str = "Say /start to see what I can do.";

/// How many answers were given once more, if the first `steps` steps are answered and nothing else
/// was said.
fn repeated(chat: &FakeChat, steps: usize) -> Option<usize> {
    let answers = STORY.iter().take(steps).flat_map(|(_, answers)| answers.iter());
    let expected: Vec<&str> = answers.copied().collect();
    let (mut next, mut again) = (0, 0);
    let heard = chat.heard().iter().map(|call| plain(&call.text())).collect::<Vec<_>>();
    for text in heard.into_iter().filter(|text| text != LOST) {
        if expected.get(next).is_some_and(|expected| *expected == text) {
            next += 1;
        } else {
            assert!(expected[..next].contains(&&*text), "{text:?} was said in step {steps}");
            again += 1;
        }
    }
    (next == expected.len()).then_some(again)
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waited).await.is_ok(), "{what}: it never came to that");
}

/// G2, G3, G4, G7, F1: with durability a replica may be killed at any moment, also while it has a message
/// of the customer: the other one goes on, nothing is lost or asked twice, and for each crash one
/// send at most is repeated.
#[tokio::test]
async fn with_durability_a_replica_may_be_killed_in_the_middle_of_a_message() {
    let Some(settings) = redis("durable") else { return };
    let platform = FakeTelegram::start().await.unwrap();
    let addresses = [free_address(), free_address()];
    let balancer = Balancer::start(addresses.to_vec()).await;
    let url = balancer.url();
    let start = |address: &str| {
        let mut all: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        all.extend([("PUBLIC_URL", url.as_str()), ("LISTEN", address)]);
        Replica::start("telegram_webhook", &platform, &all)
    };
    let mut replicas: Vec<_> = addresses.iter().map(|address| start(address)).collect();
    let ana = platform.private(42);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for (step, (act, _)) in STORY.iter().enumerate() {
        let before = balancer.given();
        act.by(&ana);
        if KILLS.contains(&step) {
            let got = || balancer.given().iter().zip(&before).position(|(now, then)| now > then);
            until("the call arrives", || got().is_some()).await;
            let victim = got().unwrap();
            // Somewhere between the call and the answer.
            let moment = Duration::from_millis(u64::from(now.subsec_nanos()) / (step as u64) % 60);
            tokio::time::sleep(moment).await;
            println!("replica {victim} is killed {moment:?} after the call of step {step}");
            replicas.remove(victim).dies().await;
            replicas.insert(victim, start(&addresses[victim]));
        }
        until(&format!("step {step}"), || repeated(&ana, step + 1).is_some()).await;
    }
    // All that might still be repeated comes before the answer to what is said last.
    ana.says("hm?");
    until("the last answer", || ana.heard().iter().any(|call| call.text() == LOST)).await;
    let again = repeated(&ana, STORY.len()).unwrap();
    println!("{again} sends were repeated");
    assert!(again <= KILLS.len(), "{again} sends were repeated in {} crashes", KILLS.len());
}
