//! Jobs, with one process and with several.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use botmesh_core::bot::{Bot, RunningBot};
use botmesh_core::prelude::*;
use botmesh_core::runtime::{JobContext, JobOutcome};
use botmesh_core::schedule::{Job, Misfire, Retry, StoreLeases, durable, plain, tz};
use botmesh_core::store::{CheckpointStore as _, CheckpointWrite};
use botmesh_core::testing::{TestProvider, World};
use botmesh_core::time::{Clock, Timestamp};
use botmesh_core::{ChatKey, Fence, MemoryStore};
use parking_lot::Mutex;

use crate::leading::exclusive;

const NOON: Timestamp = Timestamp::from_millis(1_800_014_400_000);

/// Notes the occurrences that are run.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, Timestamp, u32)>>>);

impl Log {
    fn note(&self, job: &JobContext) {
        self.0.lock().push((job.name().to_owned(), job.slot(), job.attempt()));
    }

    fn slots(&self) -> Vec<u64> {
        self.0.lock().iter().map(|(_, slot, _)| slot.since(NOON).as_millis() as u64).collect()
    }

    fn attempts(&self) -> Vec<u32> {
        self.0.lock().iter().map(|(.., attempt)| *attempt).collect()
    }

    /// What is run from now on succeeds.
    fn every(&self, bot: Bot, period: Duration, job: Job) -> Bot {
        let log = self.clone();
        bot.every(period, job, move |job| {
            log.note(&job);
            async { Ok(()) }
        })
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn clock() -> Clock {
    Clock::following_tokio(NOON)
}

fn outcomes(world: &mut World) -> Vec<JobOutcome> {
    let events = world.events().into_iter();
    let jobs = events.filter_map(|event| match event {
        Event::Job(job) => Some(job.outcome),
        _ => None,
    });
    jobs.collect()
}

/// H1: a plain job runs on every replica, a durable one on one of them.
#[tokio::test(start_paused = true)]
async fn plain_jobs_run_on_every_replica_and_durable_ones_once() {
    let (plains, durables) = (Log::default(), Log::default());
    let (logs, clock) = ((plains.clone(), durables.clone()), clock());
    let world = World::replicas(3, move |bot| {
        let bot = logs.0.every(bot, millis(1000), plain("plain"));
        logs.1.every(bot, millis(1000), durable("durable")).scheduler_clock(clock.clone())
    })
    .await;
    world.advance(millis(3500)).await;
    assert_eq!(plains.slots(), [1000, 1000, 1000, 2000, 2000, 2000, 3000, 3000, 3000]);
    assert_eq!(durables.slots(), [1000, 2000, 3000]);
}

/// H1, H2: replicas whose clocks differ by seconds, of which one after the other dies, run each
/// occurrence once, and none is left out.
#[tokio::test(start_paused = true)]
async fn each_occurrence_is_run_once_across_replicas_whose_clocks_differ() {
    let log = Log::default();
    let (all, begun) = (log.clone(), AtomicU32::new(0));
    let clocks: Vec<Clock> = [5, 0, 10]
        .map(|ahead| Clock::following_tokio(NOON.plus(Duration::from_secs(ahead))))
        .into();
    let mut world = World::replicas(3, move |bot| {
        let replica = begun.fetch_add(1, Ordering::SeqCst) as usize;
        let job = durable("tick").misfire(Misfire::CatchUp { most: 100_000 });
        all.every(bot, millis(10), job).scheduler_clock(clocks[replica % 3].clone())
    })
    .await;
    for replica in 0..2 {
        world.advance(millis(700)).await;
        world.crash_replica(replica);
        world.advance(Duration::from_secs(30)).await;
    }
    let slots = log.slots();
    let first = slots[0];
    let wanted: Vec<u64> = (0..slots.len() as u64).map(|number| first + number * 10).collect();
    assert!(slots.len() > 1000, "{}", slots.len());
    assert_eq!(slots, wanted);
}

/// H1: occurrences are remembered over a restart, and those that were missed are dealt with.
#[tokio::test(start_paused = true)]
async fn a_restart_repeats_nothing_and_forgets_nothing() {
    let log = Log::default();
    let (all, clock) = (log.clone(), clock());
    let mut world = World::new(move |bot| {
        let job = durable("tick").misfire(Misfire::CatchUp { most: 3 });
        all.every(bot, millis(1000), job).scheduler_clock(clock.clone())
    })
    .await;
    world.advance(millis(2500)).await;
    world.stop().await;
    tokio::time::sleep(millis(7000)).await;
    world.restart().await;
    world.advance(millis(10)).await;
    assert_eq!(log.slots(), [1000, 2000, 7000, 8000, 9000]);
    let skipped = outcomes(&mut world);
    assert!(skipped.contains(&JobOutcome::Skipped { count: 4 }), "{skipped:?}");
}

/// H3: a job that fails is repeated with back-off, and told when it is given up.
#[tokio::test(start_paused = true)]
async fn a_job_that_fails_is_repeated_with_back_off() {
    let log = Log::default();
    let (all, clock) = (log.clone(), clock());
    let mut world = World::new(move |bot| {
        let all = all.clone();
        let retry = Retry::new(3).first(Duration::from_secs(1));
        let bot = bot.every(Duration::from_secs(60), durable("report").retry(retry), move |job| {
            all.note(&job);
            async { Err::<(), _>(BotError::message("no paper")) }
        });
        bot.scheduler_clock(clock.clone())
    })
    .await;
    world.advance(Duration::from_secs(61)).await;
    assert_eq!(log.attempts(), [1, 2]);
    world.advance(Duration::from_secs(10)).await;
    assert_eq!(log.attempts(), [1, 2, 3]);
    let failed = |attempt, again: Option<u64>| JobOutcome::Failed {
        attempt,
        again_in: again.map(Duration::from_secs),
    };
    assert_eq!(outcomes(&mut world), [failed(1, Some(1)), failed(2, Some(2)), failed(3, None)]);
    world.advance(Duration::from_secs(60)).await;
    assert!(world.errors().contains(&"the job report: no paper".to_owned()));
    assert_eq!(log.slots(), [60_000, 60_000, 60_000, 120_000, 120_000, 120_000]);
}

/// H3: a panic and a timeout are failures like others.
#[tokio::test(start_paused = true)]
async fn panics_and_timeouts_are_failures() {
    let clock = clock();
    let mut world = World::new(move |bot| {
        let once = Retry::new(1);
        bot.every(millis(1000), durable("hangs").retry(once).timeout(millis(100)), |_| async {
            std::future::pending::<()>().await;
            Ok(())
        })
        .every(millis(1000), durable("panics").retry(once), |_| async {
            if tokio::time::Instant::now().elapsed() < Duration::MAX {
                panic!("no such luck");
            }
            Ok(())
        })
        .scheduler_clock(clock.clone())
    })
    .await;
    world.advance(millis(1500)).await;
    let errors = world.errors();
    assert!(errors.iter().any(|error| error.contains("did not end within 100ms")), "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("no such luck")), "{errors:?}");
}

/// Is inside while it exists.
struct Inside(Arc<AtomicU32>);

impl Inside {
    fn enter(inside: &Arc<AtomicU32>, overlapped: &Arc<AtomicBool>) -> Self {
        if inside.fetch_add(1, Ordering::SeqCst) > 0 {
            overlapped.store(true, Ordering::SeqCst);
        }
        Self(Arc::clone(inside))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// H3: a job whose replica cannot renew its lease is cancelled before another replica runs it.
#[tokio::test(start_paused = true)]
async fn a_job_that_outlives_its_lease_is_cancelled_before_another_replica_runs_it() {
    let (inside, overlapped) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let log = Log::default();
    let (all, clock) = (log.clone(), clock());
    let both = (Arc::clone(&inside), Arc::clone(&overlapped));
    let world = World::replicas(2, move |bot| {
        let (all, both) = (all.clone(), both.clone());
        let bot = bot.every(millis(1000), durable("long"), move |job| {
            all.note(&job);
            let (inside, overlapped) = both.clone();
            async move {
                let _inside = Inside::enter(&inside, &overlapped);
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(())
            }
        });
        bot.scheduler_clock(clock.clone())
    })
    .await;
    world.advance(millis(1500)).await;
    assert_eq!(log.attempts(), [1]);
    world.coordinator(0).faults().freeze();
    world.advance(Duration::from_secs(60)).await;
    // The same occurrence, on the other replica.
    assert_eq!(log.attempts(), [1, 2]);
    assert_eq!(log.slots(), [1000, 1000]);
    assert_eq!(inside.load(Ordering::SeqCst), 1);
    assert!(!overlapped.load(Ordering::SeqCst));
}

/// D7, H3: a stop waits for the occurrence that is being run, and then the next replica goes on.
#[tokio::test(start_paused = true)]
async fn a_stop_lets_a_job_come_to_its_end_and_hands_over_at_once() {
    let log = Log::default();
    let (all, ended, clock) = (log.clone(), Arc::new(AtomicU32::new(0)), clock());
    let counted = Arc::clone(&ended);
    let mut world = World::replicas(2, move |bot| {
        let (all, counted) = (all.clone(), Arc::clone(&counted));
        let bot = bot.every(millis(1000), durable("slow"), move |job| {
            all.note(&job);
            let counted = Arc::clone(&counted);
            async move {
                tokio::time::sleep(millis(400)).await;
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        });
        bot.scheduler_clock(clock.clone())
    })
    .await;
    world.advance(millis(1100)).await;
    world.stop_replica(0).await;
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    world.advance(millis(1000)).await;
    assert_eq!(log.slots(), [1000, 2000]);
    assert_eq!(log.attempts(), [1, 1]);
}

/// A bot on a store, as a process of its own.
async fn process(store: &MemoryStore, log: &Log, leased: bool) -> RunningBot {
    let mut bot = Bot::new(TestProvider::new()).store(store.clone());
    if leased {
        bot = bot.scheduler_lease(StoreLeases::new(store.clone()));
    }
    let bot = log.every(bot, millis(1000), durable("tick")).scheduler_clock(clock());
    bot.start().await.unwrap()
}

/// H2: the locks of a store are leases too, for replicas without coordination.
#[tokio::test(start_paused = true)]
async fn the_locks_of_a_store_are_leases_too() {
    let store = MemoryStore::new().as_shared();
    let log = Log::default();
    let (one, other) = (process(&store, &log, true).await, process(&store, &log, true).await);
    tokio::time::sleep(millis(2500)).await;
    assert_eq!(log.slots(), [1000, 2000]);
    // Renewed, it outlives the time for which it was taken.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(log.slots().len(), 42);
    drop(one);
    // Killed, it holds the lease until that runs out; what was missed is made up for once.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let slots = log.slots();
    assert!(slots.is_sorted_by(|one, other| one < other), "{slots:?}");
    assert!(slots.len() > 42, "{slots:?}");
    other.stop().await;
}

/// H1: what is stored of a job is no conversation, and one that cannot be read begins anew.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_begins_anew_and_is_told() {
    let store = MemoryStore::new();
    let key = ChatKey::decode("botmesh.job:tick").unwrap();
    let body = CheckpointWrite { body: "{\"v\":9}", wake_in: None, expires_in: None };
    // Written by a clock that was far ahead.
    let far = Fence::new(Clock::system().now_micros() + 3_600_000_000);
    store.set_checkpoint(&key, body, far).await.unwrap();
    let log = Log::default();
    let running = process(&store, &log, false).await;
    let mut events = running.events();
    tokio::time::sleep(millis(1500)).await;
    assert_eq!(log.slots(), [1000]);
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let told = told.filter(|event| matches!(event, Event::Error(_))).count();
    assert_eq!(told, 1);
    running.stop().await;
}

/// H1: cron and single moments run as they say.
#[tokio::test(start_paused = true)]
async fn cron_and_single_moments_run_as_they_say() {
    let log = Log::default();
    let (all, clock) = (log.clone(), clock());
    let world = World::new(move |bot| {
        let (crons, once) = (all.clone(), all.clone());
        bot.cron("*/15 * * * *", tz("America/Bogota"), durable("quarter"), move |job| {
            crons.note(&job);
            async { Ok(()) }
        })
        .at(NOON.plus(millis(1_000_000)), durable("once"), move |job| {
            once.note(&job);
            async { Ok(()) }
        })
        .scheduler_clock(clock.clone())
    })
    .await;
    world.advance(Duration::from_secs(3600)).await;
    let mut counts = BTreeMap::new();
    for (name, ..) in log.0.lock().iter() {
        *counts.entry(name.clone()).or_insert(0) += 1;
    }
    assert_eq!(counts, BTreeMap::from([("once".to_owned(), 1), ("quarter".to_owned(), 4)]));
}

/// A10: what is wrong with jobs is told before anything starts.
#[test]
fn mistakes_in_jobs_are_told_together() {
    async fn nothing(_: JobContext) -> Result<(), BotError> {
        Ok(())
    }
    let bot = Bot::new(TestProvider::new())
        .every(Duration::ZERO, durable("a"), nothing)
        .cron("often", tz("UTC"), durable("b"), nothing)
        .cron("* * * * *", tz("Nowhere"), durable("c"), nothing)
        .every(millis(10), durable("d"), nothing)
        .every(millis(20), durable("d").retry(Retry::new(0)), nothing)
        .every(millis(20), durable("").timeout(Duration::ZERO), nothing)
        .every(millis(20), durable("e").beside("fax"), nothing);
    let error = bot.build().err().unwrap().to_string();
    for wanted in [
        "Bot::every(\"a\")",
        "is no cron pattern",
        "there is no time zone \"Nowhere\"",
        "another durable job has this name",
        "with 0 attempts",
        "the name does not fit",
        "a timeout of 0",
        "the bot has no provider \"fax\"",
    ] {
        assert!(error.contains(wanted), "{wanted} is not in {error}");
    }
}

/// E1, H2: a job that writes to a platform with one session runs where that is.
#[tokio::test(start_paused = true)]
async fn a_job_runs_beside_the_provider_that_it_writes_to() {
    let (clock, sent) = (clock(), Arc::new(Mutex::new(Vec::new())));
    let all = Arc::clone(&sent);
    let mut world = World::coordinated(
        exclusive(),
        2,
        |coordination| coordination,
        move |bot| {
            let all = Arc::clone(&all);
            let job = durable("notice").beside("test").misfire(Misfire::Skip);
            bot.every(millis(1000), job, move |job| {
                let all = Arc::clone(&all);
                async move {
                    let chat = ChatKey::decode("test:ana").unwrap();
                    let sent = job.send(&chat, "news", None).await;
                    all.lock().push(sent.is_ok());
                    Ok(sent?)
                }
            })
            .scheduler_clock(clock.clone())
        },
    )
    .await;
    world.advance(millis(2500)).await;
    assert_eq!(*sent.lock(), [true, true]);
    // The session goes to the other replica, and the job with it.
    world.crash_replica(0);
    world.advance(Duration::from_secs(60)).await;
    let after = sent.lock().clone();
    assert!(after.len() > 20 && after.iter().all(|sent| *sent), "{after:?}");
}
