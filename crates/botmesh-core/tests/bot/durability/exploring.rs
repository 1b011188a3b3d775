//! Replicas that crash, freeze and lose their store at random, and what their users heard in the
//! end. `BOTMESH_SEED=7` repeats the run of one seed, `BOTMESH_SEEDS=2000` runs so many.

use botmesh_core::bot::Coordination;
use botmesh_core::provider::Capabilities;
use botmesh_core::testing::{
    CrashPoints, CrashingStore, Dice, MemoryCoordinationHub, MemoryCoordinator, TestProvider,
};
use botmesh_core::{Event, MemoryStore, MessageId, RunningBot};
use tokio::time::Instant;

use super::*;

struct Process {
    connection: TestProvider,
    points: CrashPoints,
    coordinator: Option<Arc<MemoryCoordinator>>,
    running: Option<RunningBot>,
}

struct Run {
    store: MemoryStore,
    hub: MemoryCoordinationHub,
    platform: TestProvider,
    processes: Vec<Process>,
    buried: Log,
    coordinated: bool,
    /// Whether turns and inbox are one backend.
    journaled: bool,
}

/// The last one sleeps, the others talk.
const USERS: usize = 5;
const SLEEPER: usize = USERS - 1;
const SAYS: usize = 12;

impl Run {
    fn new(dice: &mut Dice, knows_keys: bool) -> Self {
        let mut capabilities = Capabilities::default();
        capabilities.idempotent_send = knows_keys;
        let platform = TestProvider::new().with_capabilities(capabilities);
        let count = 1 + dice.below(3);
        let process = |number| Process {
            connection: if number == 0 { platform.clone() } else { platform.another_connection() },
            points: CrashPoints::never(),
            coordinator: None,
            running: None,
        };
        let processes = (0..count).map(process).collect();
        let (store, hub) = (MemoryStore::new().as_shared(), MemoryCoordinationHub::new());
        let journaled = dice.below(2) == 0;
        let buried = Log::default();
        Self { store, hub, platform, processes, buried, coordinated: count > 1, journaled }
    }

    async fn start(&mut self, number: usize) {
        let process = &mut self.processes[number];
        process.points = CrashPoints::never();
        let store = CrashingStore::new(Arc::new(self.store.clone()), process.points.clone());
        let mut bot = durable(Bot::new(process.connection.clone()).store(store.clone()))
            .flow(three_names())
            .flow(nights())
            .fallback(|ctx| async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                ctx.reply(format!("1: {}", ctx.text())).await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                ctx.reply(format!("2: {}", ctx.text())).await
            });
        if self.coordinated {
            let mut coordinator = MemoryCoordinator::builder(&self.hub);
            if self.journaled {
                coordinator = coordinator.journaling(store);
            }
            let made = Arc::new(coordinator.build());
            bot = bot.coordination(Coordination::new(Arc::clone(&made)));
            process.coordinator = Some(made);
        }
        let running = bot.start().await.unwrap();
        let buried = self.buried.clone();
        running.on(move |event| {
            if let Event::DeadLetter { error, .. } = event {
                buried.note(error.to_string());
            }
        });
        process.running = Some(running);
    }

    fn crash(&mut self, number: usize) {
        let process = &mut self.processes[number];
        if let Some(coordinator) = process.coordinator.take() {
            coordinator.crash();
        }
        drop(process.running.take());
    }

    /// Something goes wrong with one process.
    async fn disturb(&mut self, dice: &mut Dice) {
        let number = dice.pick(self.processes.len());
        match dice.below(6) {
            0 | 1 => {
                self.crash(number);
                tokio::time::sleep(dice.millis(0, 20_000)).await;
                self.start(number).await;
            }
            2 => {
                if let Some(running) = self.processes[number].running.take() {
                    self.processes[number].coordinator = None;
                    running.stop().await;
                }
                self.start(number).await;
            }
            3 => self.processes[number].points.fail(dice.below(300), dice.below(u64::MAX)),
            4 => {
                if let Some(coordinator) = &self.processes[number].coordinator {
                    let faults = coordinator.faults().clone();
                    faults.freeze();
                    let thaws = dice.millis(0, 40_000);
                    tokio::spawn(async move {
                        tokio::time::sleep(thaws).await;
                        faults.thaw();
                    });
                }
            }
            _ => self.processes[number].connection.lose_next_receipt(),
        }
    }

    fn heal(&self) {
        for process in &self.processes {
            process.points.fail(0, 0);
        }
    }
}

/// The texts that the bot has sent to a chat.
fn heard(platform: &TestProvider, user: usize) -> Vec<String> {
    let entries = platform.transcript_of(&platform.chat(&format!("u{user}"))).into_iter();
    entries.filter_map(|entry| Some(entry.what.sent()?.text.to_string())).collect()
}

const NIGHTS: usize = 4;

/// Time alone moves it on.
fn nights() -> Flow<Names> {
    let night = Duration::from_secs(5);
    (0..NIGHTS)
        .fold(flow("nights").enter_on("sleep"), |nights, number| {
            nights
                .say(move |_| format!("Good night {number}"))
                .resume_after(night)
                .say(move |_| format!("Good morning {number}"))
        })
        .persistent()
}

/// What a user says: a flow from its beginning to its end, and single messages.
fn says(user: usize) -> Vec<String> {
    if user == SLEEPER {
        return vec!["sleep".to_owned()];
    }
    let says = |number| match (user % 2, number % 4) {
        (0, 0) => "go".to_owned(),
        (0, number) => format!("n{number}"),
        _ => format!("m{number}-{user}"),
    };
    (0..SAYS).map(says).collect()
}

/// What such a user is to hear.
fn hears(user: usize) -> Vec<String> {
    if user == SLEEPER {
        let night = |number| [format!("Good night {number}"), format!("Good morning {number}")];
        return (0..NIGHTS).flat_map(night).collect();
    }
    let flow = ["Name 1?", "Name 2?", "Name 3?", "n1, n2, n3"];
    if user.is_multiple_of(2) {
        return flow.iter().cycle().take(SAYS).map(|&text| text.to_owned()).collect();
    }
    says(user).iter().flat_map(|text| [format!("1: {text}"), format!("2: {text}")]).collect()
}

async fn run(seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed, 0);
    let knows_keys = dice.below(2) == 0;
    let mut run = Run::new(&mut dice, knows_keys);
    for number in 0..run.processes.len() {
        run.start(number).await;
    }
    let mut next = [0_usize; USERS];
    let began = Instant::now();
    while (0..USERS).any(|user| next[user] < says(user).len()) {
        if dice.below(6) == 0 {
            run.disturb(&mut dice).await;
        }
        let user = dice.pick(USERS);
        if let Some(text) = says(user).get(next[user]) {
            let chat = run.platform.chat(&format!("u{user}"));
            let id = MessageId::new(format!("{user}-{}", next[user])).unwrap();
            let message = Message::text(chat, text.clone()).with_id(id);
            let to = dice.pick(run.processes.len());
            // The platform sends it again, perhaps to another replica, until it was taken.
            let deliver = run.processes[to].connection.deliver(message);
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(5), deliver).await {
                next[user] += 1;
            }
        }
        tokio::time::sleep(dice.millis(0, 700)).await;
        if began.elapsed() > Duration::from_secs(7_200) {
            return Err("the messages were not taken in two hours".to_owned());
        }
    }
    run.heal();
    let healed = Instant::now();
    let is_done = |run: &Run| {
        (0..USERS)
            .all(|user| heard(&run.platform, user).ends_with(&hears(user)[hears(user).len() - 1..]))
    };
    while !is_done(&run) && healed.elapsed() < Duration::from_secs(600) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for user in 0..USERS {
        let (all, wanted) = (heard(&run.platform, user), hears(user));
        let mut once = all.clone();
        once.dedup();
        if once != wanted || (knows_keys && all != wanted) {
            let buried = run.buried.take();
            return Err(format!("u{user} heard {all:?}, not {wanted:?}; buried {buried:?}"));
        }
    }
    Ok(())
}

/// G2, G3, G4, G7: whatever fails, each user hears the answers to all that was accepted, in order,
/// and from a platform that knows keys each of them once.
#[test]
fn whatever_fails_each_message_is_answered_in_order() {
    let set = |name| std::env::var(name).ok().map(|value: String| value.parse().unwrap());
    let seeds = match set("BOTMESH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..set("BOTMESH_SEEDS").unwrap_or(60),
    };
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        if let Err(wrong) = runtime.block_on(run(seed)) {
            panic!("seed {seed}: {wrong}");
        }
    }
}
