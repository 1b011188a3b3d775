//! Conversations that time wakes: what they send then is not sent again.

use botmesh_core::provider::Capabilities;
use botmesh_core::testing::{CrashPoints, CrashingStore, TestProvider};
use botmesh_core::{Event, MemoryStore, RunningBot, question};

use super::*;

const NIGHT: Duration = Duration::from_secs(8);

const ALL: [&str; 4] = ["Good night", "Good morning", "Breakfast is ready", "Good bye"];

/// Says good night, and after the night a few things more.
fn night() -> Flow<Names> {
    flow("night")
        .enter_on("sleep")
        .say(|_| ALL[0])
        .resume_after(NIGHT)
        .say(|_| ALL[1])
        .say(|_| ALL[2])
        .resume_after(NIGHT)
        .say(|_| ALL[3])
        .persistent()
}

/// One process of a bot on a platform and a store that outlive it.
struct Process {
    points: CrashPoints,
    _running: RunningBot,
}

impl Process {
    async fn start(platform: &TestProvider, store: &MemoryStore, points: CrashPoints) -> Self {
        let store = CrashingStore::new(Arc::new(store.clone()), points.clone());
        let bot = durable(Bot::new(platform.clone()).store(store)).flow(night());
        Self { points, _running: bot.start().await.unwrap() }
    }
}

fn heard(platform: &TestProvider) -> Vec<String> {
    let entries = platform.transcript_of(&platform.chat("ana")).into_iter();
    entries.filter_map(|entry| Some(entry.what.sent()?.text.to_string())).collect()
}

/// A night in which the process dies at this call to the store. Returns what was heard, and how
/// many calls there were.
async fn night_with_a_crash(knows_keys: bool, at: usize) -> (Vec<String>, usize) {
    let mut capabilities = Capabilities::default();
    capabilities.idempotent_send = knows_keys;
    let platform = TestProvider::new().with_capabilities(capabilities);
    let store = MemoryStore::new();
    // The beginning is no business of this test.
    let first = Process::start(&platform, &store, CrashPoints::never()).await;
    platform.says(&platform.chat("ana"), "sleep").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(heard(&platform), ALL[..1]);
    drop(first);
    let second = Process::start(&platform, &store, CrashPoints::at(at)).await;
    tokio::select! {
        () = second.points.crashed() => {}
        () = tokio::time::sleep(NIGHT * 4) => {}
    }
    let points = second.points.passed();
    drop(second);
    let _third = Process::start(&platform, &store, CrashPoints::never()).await;
    tokio::time::sleep(NIGHT * 4).await;
    (heard(&platform), points)
}

/// F12, G4: wherever a process dies while it wakes a conversation, a platform that knows keys sees
/// each send once, and another one at most one again.
#[tokio::test(start_paused = true)]
async fn what_a_wake_up_sends_is_not_sent_again_wherever_the_process_dies() {
    for knows_keys in [true, false] {
        let (all, points) = night_with_a_crash(knows_keys, usize::MAX).await;
        assert_eq!(all, ALL);
        // The calls of two wake-ups at least.
        assert!((8..200).contains(&points), "{points} points");
        for at in 0..points {
            let (mut heard, _) = night_with_a_crash(knows_keys, at).await;
            let all = heard.clone();
            heard.dedup();
            assert_eq!(heard, ALL, "after a crash at {at} of {points}");
            let most = if knows_keys { 0 } else { 1 };
            assert!(all.len() - heard.len() <= most, "after a crash at {at} of {points}: {all:?}");
        }
    }
}

/// F12, G4: another replica goes on with a wake-up whose owner dies in the middle of it. On a platform
/// that knows no keys the last send before that comes again, and no other.
#[tokio::test(start_paused = true)]
async fn another_replica_goes_on_with_a_wake_up_where_its_owner_died() {
    let log = Log::default();
    let noted = log.clone();
    let mut world = World::replicas(2, move |bot| {
        let log = noted.clone();
        let slow: Flow<Names> = flow("slow")
            .enter_on("sleep")
            .say(|_| ALL[0])
            .resume_after(NIGHT)
            .say(|_| ALL[1])
            .say(|_| ALL[2])
            .do_(move |_| {
                log.note("up");
                async {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    Ok(())
                }
            })
            .say(|_| ALL[3])
            .persistent();
        durable(bot).flow(slow)
    })
    .await;
    let mut ana = world.user("ana");
    ana.on(0).says("sleep").await.hears(ALL[0]);
    tokio::time::sleep(NIGHT + Duration::from_secs(2)).await;
    assert_eq!(log.take(), ["up"]);
    world.crash_replica(0);
    world.advance(LEASE * 4).await;
    assert_eq!(log.take(), ["up"]);
    ana.hears(ALL[1]).hears(ALL[2]).hears(ALL[2]).hears(ALL[3]).hears_nothing();
}

/// A5, G4: a user who is silent is reminded once in a wait, also when the process dies meanwhile, and
/// the wait ends at its moment.
#[tokio::test(start_paused = true)]
async fn a_silent_user_is_reminded_once_and_the_wait_ends_at_its_moment() {
    let mut world = World::new(|bot| {
        let asks = flow("patient")
            .enter_on("go")
            .timeout(Duration::from_secs(60))
            .idle(Duration::from_secs(20), "Still there?")
            .ask("Well?", |s: &mut Names, answer| {
                s.names.push(answer.text()?);
                Ok(())
            })
            .say(|s| s.names.join(", "));
        durable(bot).flow(asks.persistent())
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("Well?");
    world.advance(Duration::from_secs(21)).await;
    ana.hears("Still there?");
    world.crash();
    world.restart().await;
    world.advance(Duration::from_secs(38)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(2)).await;
    assert!(ana.hears_something().text.starts_with("I have not heard from you"));
    ana.says("go").await.hears("Well?");
    world.advance(Duration::from_secs(21)).await;
    ana.hears("Still there?").says("yes").await.hears("yes").hears_nothing();
    assert_eq!(world.running(0).dead_letters(None, 1).await.unwrap(), []);
}

/// Fails when nobody has answered in time.
fn gives_up(log: &Log) -> Flow<Names> {
    let log = log.clone();
    flow("impatient")
        .enter_on("go")
        .ask(question("Well?").timeout(NIGHT), |s: &mut Names, a| {
            s.names.push(a.text()?);
            Ok(())
        })
        .on_timeout("late")
        .end()
        .label("late")
        .do_(move |_| {
            log.note("late");
            async { Err::<(), _>(BotError::message("it cannot be late")) }
        })
        .persistent()
}

/// G5: a wake-up that keeps failing is a dead letter after all its attempts, and is not begun anew
/// all the time.
#[tokio::test(start_paused = true)]
async fn a_wake_up_that_keeps_failing_becomes_a_dead_letter() {
    let log = Log::default();
    let noted = log.clone();
    let mut world = World::new(move |bot| durable(bot).flow(gives_up(&noted))).await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("Well?");
    world.advance(Duration::from_secs(24 * 3600)).await;
    assert_eq!(log.take().len(), 5);
    let letters = world.running(0).dead_letters(None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].attempts, letters[0].message.as_ref()), (5, None));
    assert!(letters[0].error.contains("it cannot be late"), "{}", letters[0].error);
    let buried = world.events().iter().filter(|e| matches!(e, Event::DeadLetter { .. })).count();
    assert_eq!(buried, 1);
}

/// F12: a store that is away when a conversation is due is asked again.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_when_a_conversation_is_due_is_asked_again() {
    let (platform, store) = (TestProvider::new(), MemoryStore::new());
    let process = Process::start(&platform, &store, CrashPoints::never()).await;
    platform.says(&platform.chat("ana"), "sleep").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    process.points.fail(1_000, 7);
    tokio::time::sleep(NIGHT * 2).await;
    assert_eq!(heard(&platform), ALL[..1]);
    process.points.fail(0, 0);
    tokio::time::sleep(NIGHT * 4).await;
    assert_eq!(heard(&platform), ALL);
}
