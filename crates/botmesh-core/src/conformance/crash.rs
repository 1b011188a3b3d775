//! Cases about bots that die at any of the calls that they make to the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::case::{PATIENCE, ensure, ensure_eq};
use super::coordinator::{CrashingCoordinator, Replica};
use super::store::{Space, conditional, inbox};
use super::{CaseError, StoreFixture};
use crate::bot::{Bot, Coordination, Durability, RunningBot};
use crate::coordination::{Coordinator, CoordinatorSettings};
use crate::flow::{Flow, flow};
use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::Message;
use crate::provider::Capabilities;
use crate::store::Store;
use crate::testing::{
    CrashPoints, CrashingStore, MemoryCoordinationHub, MemoryCoordinator, TestProvider,
};

/// How long the records of a dead process wait for another one.
const LEASE: Duration = Duration::from_millis(400);
/// How many runs are under way at a time.
const AT_ONCE: usize = 12;
/// More points than any run passes.
const MOST: usize = 500;

/// What the users say, in this order.
const SAID: &[(&str, &str)] = &[
    ("eve", "nap"),
    ("ana", "go"),
    ("bob", "hi"),
    ("ana", "Ana"),
    ("ana", "Cleo"),
    ("bob", "you"),
    ("ana", "thanks"),
];

/// What they are to hear.
const HEARD: &[(&str, &[&str])] = &[
    ("ana", &["First name?", "Second name?", "Ana and Cleo", "1: thanks", "2: thanks"]),
    ("bob", &["1: hi", "2: hi", "1: you", "2: you"]),
    ("eve", &["Good night", "Good morning", "Breakfast is ready"]),
];

/// How long the sleep is of a conversation that time moves on.
const NAP: Duration = Duration::from_millis(100);

/// What a platform and a bot are like in a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Whether the platform recognises a send that comes again.
    pub(super) knows_keys: bool,
    pub(super) replicas: usize,
}

/// Where the processes of a run live.
pub(super) struct Ground {
    pub(super) store: Arc<dyn Store>,
    /// The coordinator of each; none for a process that is alone.
    pub(super) replicas: Vec<Arc<dyn Replica>>,
}

/// One process of the bot.
struct Process {
    connection: TestProvider,
    running: Option<RunningBot>,
    replica: Option<Arc<dyn Replica>>,
}

/// A replica whose store is another backend.
#[derive(Debug)]
struct OnHub(MemoryCoordinator);

#[async_trait]
impl Replica for OnHub {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.0
    }

    async fn crash(&self) {
        self.0.crash();
    }
}

/// G4, G7: wherever one process dies, all that was accepted is processed in order after it was
/// started again, and of the sends of a chat one at most is repeated.
pub async fn wherever_a_process_dies_nothing_is_lost_and_one_send_repeated_at_most(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    at_every_point(fixture, Setting { knows_keys: false, replicas: 1 }).await
}

/// G4, G7: a platform that recognises a send that comes again sees each once, wherever the process
/// dies.
pub async fn wherever_a_process_dies_a_platform_that_knows_keys_sees_each_send_once(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    at_every_point(fixture, Setting { knows_keys: true, replicas: 1 }).await
}

/// G2, G7: wherever one of two replicas dies, the other one processes what was accepted, in order.
pub async fn wherever_a_replica_dies_the_other_one_goes_on(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    at_every_point(fixture, Setting { knows_keys: true, replicas: 2 }).await
}

async fn at_every_point(fixture: &dyn StoreFixture, setting: Setting) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    inbox(&*store)?;
    conditional(&*store)?;
    if setting.replicas > 1 && !store.is_shared() {
        return Err(CaseError::NotRun("not shared"));
    }
    drop(store);
    let ground = || async {
        let store = Space::new(fixture).open().await?;
        let mut replicas = Vec::new();
        if setting.replicas > 1 {
            let hub = MemoryCoordinationHub::new();
            let settings =
                CoordinatorSettings::builder().lease(LEASE).build().map_err(violation)?;
            for _ in 0..setting.replicas {
                let coordinator = MemoryCoordinator::builder(&hub).settings(settings.clone());
                replicas.push(Arc::new(OnHub(coordinator.build())) as Arc<dyn Replica>);
            }
        }
        Ok(Ground { store, replicas })
    };
    crash_everywhere(ground, setting, AT_ONCE).await
}

/// Runs once without a crash, and once for each point with a crash there, so many at a time.
pub(super) async fn crash_everywhere<F>(
    ground: impl Fn() -> F,
    setting: Setting,
    at_once: usize,
) -> Result<(), CaseError>
where
    F: Future<Output = Result<Ground, CaseError>>,
{
    let points = run(ground().await?, setting, MOST).await?;
    ensure!((10..MOST).contains(&points), "a run without a crash passes {points} points");
    let ground = &ground;
    let runs = stream::iter(0..points).map(|at| async move {
        let ended = run(ground().await?, setting, at).await;
        ended.map_err(|error| match error {
            CaseError::Violation(what) => {
                CaseError::Violation(format!("after a crash at point {at} of {points}: {what}"))
            }
            other => other,
        })
    });
    runs.buffer_unordered(at_once).try_for_each(|_| async { Ok(()) }).await
}

/// One run, in which the first process dies at this point. Returns how many points it passed.
async fn run(ground: Ground, setting: Setting, at: usize) -> Result<usize, CaseError> {
    let Ground { store, replicas } = ground;
    let points = CrashPoints::at(at);
    let capabilities =
        Capabilities { idempotent_send: setting.knows_keys, ..Capabilities::default() };
    // A platform of its own, for a fixture may give all runs the same store.
    let provider = format!("test-{}", uuid::Uuid::new_v4().simple());
    let provider = ProviderId::new(provider).map_err(violation)?;
    let platform = TestProvider::with_id(provider).with_capabilities(capabilities);
    let mut processes = Vec::new();
    for number in 0..setting.replicas {
        let points = if number == 0 { points.clone() } else { CrashPoints::never() };
        processes.push(start(&platform, &store, points, replicas.get(number), setting).await?);
    }
    let mut is_dead = false;
    for (number, (user, text)) in SAID.iter().enumerate() {
        let id = MessageId::new(format!("said-{number}")).map_err(violation)?;
        let message = Message::text(platform.chat(user), *text).with_id(id);
        // The platform sends it again until it was taken, to whichever replica there is.
        let began = Instant::now();
        loop {
            let to = if is_dead { setting.replicas - 1 } else { number % setting.replicas };
            let connection = processes[to].connection.clone();
            let delivered = tokio::select! {
                biased;
                () = points.crashed(), if !is_dead => None,
                delivered = in_time("a delivery", connection.deliver(message.clone())) => {
                    Some(delivered?)
                }
            };
            match delivered {
                Some(Ok(_)) => break,
                // The connection of a process that is just dying.
                Some(Err(error)) => {
                    ensure!(began.elapsed() < PATIENCE, "{text:?} was not taken: {error}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                None => {
                    is_dead = true;
                    replace(&mut processes, &platform, &store, setting).await?;
                }
            }
        }
    }
    let began = Instant::now();
    loop {
        if !is_dead && points.passed() > at {
            is_dead = true;
            replace(&mut processes, &platform, &store, setting).await?;
        }
        if all_was_heard(&platform) && is_idle(&processes).await {
            break;
        }
        ensure!(began.elapsed() < PATIENCE, "not all was done: {:?}", heard(&platform));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(processes);
    check(&platform, setting, is_dead)?;
    let letters = inbox(&*store)?.dead_letters(None, 9).await?;
    ensure_eq!(letters, [], "dead letters");
    Ok(points.passed())
}

async fn start(
    platform: &TestProvider,
    store: &Arc<dyn Store>,
    points: CrashPoints,
    replica: Option<&Arc<dyn Replica>>,
    setting: Setting,
) -> Result<Process, CaseError> {
    let connection = platform.another_connection();
    let own = replica.and_then(|replica| replica.store());
    let store = CrashingStore::new(own.unwrap_or_else(|| Arc::clone(store)), points.clone());
    let durability = Durability::inbox_and_outbox().lease(LEASE);
    let mut bot = Bot::new(connection.clone())
        .store(store.clone())
        .durability(durability)
        .flow(two_names())
        .flow(nap(setting))
        .fallback(|ctx| async move {
            ctx.reply(format!("1: {}", ctx.text())).await?;
            ctx.reply(format!("2: {}", ctx.text())).await
        });
    if let Some(replica) = replica {
        let coordinator = CrashingCoordinator::new(Arc::clone(replica), store, points);
        bot = bot.coordination(Coordination::new(coordinator));
    }
    let running = bot.start().await.map_err(violation)?;
    Ok(Process { connection, running: Some(running), replica: replica.cloned() })
}

fn two_names() -> Flow<Vec<String>> {
    let keep = |names: &mut Vec<String>, answer: crate::Answer| {
        names.push(answer.text()?);
        Ok(())
    };
    flow("names")
        .enter_on("go")
        .ask("First name?", keep)
        .ask("Second name?", keep)
        .say(|names: &Vec<String>| names.join(" and "))
        .persistent()
}

/// Where there are replicas it keeps nobody waiting, for they look seldom at what others wake.
fn nap(setting: Setting) -> Flow<()> {
    let flow = flow("nap").enter_on("nap").say(|()| "Good night");
    let flow = if setting.replicas > 1 { flow } else { flow.resume_after(NAP) };
    flow.say(|()| "Good morning").say(|()| "Breakfast is ready").persistent()
}

/// Ends the first process where it stands, and starts it again unless another takes its place.
async fn replace(
    processes: &mut [Process],
    platform: &TestProvider,
    store: &Arc<dyn Store>,
    setting: Setting,
) -> Result<(), CaseError> {
    let [first, others @ ..] = processes else { return Ok(()) };
    if let Some(replica) = first.replica.take() {
        replica.crash().await;
    }
    // A thread of it that is just at work must not get further than its death.
    first.connection.close("its process has died");
    drop(first.running.take());
    if others.is_empty() {
        *first = start(platform, store, CrashPoints::never(), None, setting).await?;
    }
    Ok(())
}

/// What each user has heard.
fn heard(platform: &TestProvider) -> Vec<(ChatKey, Vec<String>)> {
    let texts = |chat: &ChatKey| {
        let entries = platform.transcript_of(chat).into_iter();
        entries.filter_map(|entry| Some(entry.what.sent()?.text.to_string())).collect()
    };
    let chats = HEARD.iter().map(|(user, _)| platform.chat(user));
    chats.map(|chat| (chat.clone(), texts(&chat))).collect()
}

fn all_was_heard(platform: &TestProvider) -> bool {
    heard(platform).iter().zip(HEARD).all(|((_, texts), (_, wanted))| {
        wanted.iter().all(|wanted| texts.iter().any(|text| text == wanted))
    })
}

fn check(platform: &TestProvider, setting: Setting, is_dead: bool) -> Result<(), CaseError> {
    let mut repeated = 0;
    for ((chat, mut texts), (_, wanted)) in heard(platform).into_iter().zip(HEARD) {
        let all = texts.clone();
        texts.dedup();
        ensure_eq!(texts, *wanted, "what {chat} heard, of {all:?}");
        let again = all.len() - texts.len();
        ensure!(again <= 1, "{chat} heard {again} sends again: {all:?}");
        repeated += again;
    }
    // One in each chat that was being worked for.
    let most = if is_dead && !setting.knows_keys { HEARD.len() } else { 0 };
    ensure!(repeated <= most, "{repeated} sends were repeated: {:?}", heard(platform));
    Ok(())
}

/// Whether no process has anything more to do.
async fn is_idle(processes: &[Process]) -> bool {
    for running in processes.iter().filter_map(|process| process.running.as_ref()) {
        if tokio::time::timeout(Duration::from_millis(50), running.idle()).await.is_err() {
            return false;
        }
    }
    true
}

/// Fails instead of waiting for ever.
async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> Result<T, CaseError> {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.map_err(|_| CaseError::Violation(format!("{what} did not end in {PATIENCE:?}")))
}

fn violation(error: impl std::fmt::Display) -> CaseError {
    CaseError::Violation(error.to_string())
}
