//! One run: the replicas, their users, and what befalls them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use botmesh_core::bot::{Coordination, Fallback, Handover};
use botmesh_core::prelude::*;
use botmesh_core::provider::Provider;
use botmesh_core::store::MemoryStore;
use botmesh_core::testing::{Dice, MemoryCoordinationHub, MemoryCoordinator, TestProvider};
use botmesh_core::{ChatKey, ReplicaId};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use crate::bot::define;
use crate::history::{History, Outcome, SETTLE};
use crate::plan::{Fault, Mutant, Plan};
use crate::replica::{Connection, Replica, Watched};
use crate::store::FaultyStore;
use crate::user::Person;

/// How long what was injected may show after it has ended: a lease runs out, and messages that
/// waited are handled.
const AFTERMATH: Duration = Duration::from_secs(60);
/// For so long a hub that began anew is left its clock. It grants nothing for a lease, and has only
/// its clock to measure that by: set forward meanwhile, it grants early, a limit that is documented.
const GRACE: Duration = Duration::from_secs(20);

struct Process {
    replica: Arc<Replica>,
    connection: TestProvider,
    running: Option<(RunningBot, broadcast::Receiver<Event>)>,
    coordinator: Option<Arc<MemoryCoordinator>>,
}

struct World {
    plan: Arc<Plan>,
    history: Arc<History>,
    hub: MemoryCoordinationHub,
    store: MemoryStore,
    processes: Vec<Process>,
    /// When the hub began anew.
    restarted: Option<Instant>,
}

/// Runs a plan on a scheduler with one thread and virtual time.
pub fn run(plan: Plan) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without drivers");
    runtime.block_on(World::run(plan))
}

impl World {
    async fn run(plan: Plan) -> Outcome {
        let (plan, history) = (Arc::new(plan), Arc::new(History::new()));
        let (crash, mut crashes) = mpsc::unbounded_channel();
        let healed = Arc::new(AtomicBool::new(false));
        let platform = TestProvider::new();
        let mut capabilities = platform.capabilities();
        capabilities.exclusive_session = plan.exclusive;
        let platform = platform.with_capabilities(capabilities);
        let processes = (0..plan.replicas).map(|number| Process {
            replica: Arc::new(Replica::new(number, &plan, &history, &healed, crash.clone())),
            connection: if number == 0 { platform.clone() } else { platform.another_connection() },
            running: None,
            coordinator: None,
        });
        let mut world = Self {
            processes: processes.collect(),
            plan: Arc::clone(&plan),
            history: Arc::clone(&history),
            hub: MemoryCoordinationHub::new(),
            store: MemoryStore::new().as_shared(),
            restarted: None,
        };
        for number in 0..plan.replicas {
            world.start(number).await;
        }
        let begun = Instant::now();
        let end = begun + plan.length;
        let connections: Vec<_> = world.processes.iter().map(|it| it.connection.clone()).collect();
        let people: Vec<_> = (0..plan.users)
            .map(|number| {
                let dice = Dice::new(plan.seed, 1000 + number as u64);
                let person = Person::new(&format!("user-{number}"), &connections, &history, dice);
                tokio::spawn(person.chats(end))
            })
            .collect();
        for planned in &plan.faults {
            world.until(begun + planned.at, &mut crashes).await;
            world.suffer(planned.replica, planned.fault).await;
        }
        world.until(end, &mut crashes).await;
        healed.store(true, Ordering::Relaxed);
        history.note("all is healed");
        world.heal().await;
        let mut chatted = Vec::new();
        for person in people {
            chatted.extend(person.await);
        }
        world.until(Instant::now() + AFTERMATH, &mut crashes).await;
        world.heal().await;
        let chats: Vec<_> = chatted.iter().map(|person| person.chat.clone()).collect();
        let alive: Vec<_> =
            chatted.into_iter().map(|it| tokio::spawn(it.finds_it_alive())).collect();
        for person in alive {
            if person.await.is_err() {
                history.violation("a user has panicked");
            }
        }
        world.until(Instant::now() + AFTERMATH, &mut crashes).await;
        for number in 0..plan.replicas {
            world.note_events(number);
        }
        world.nothing_is_left(&chats);
        Arc::clone(&history).end()
    }

    /// Waits until then; processes that crash meanwhile are started again after a while.
    async fn until(&mut self, moment: Instant, crashes: &mut mpsc::UnboundedReceiver<usize>) {
        loop {
            tokio::select! {
                biased;
                Some(number) = crashes.recv() => {
                    self.crash(number);
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    self.start(number).await;
                }
                () = tokio::time::sleep_until(moment) => return,
            }
        }
    }

    async fn suffer(&mut self, number: usize, fault: Fault) {
        self.history.note(format!("{number} suffers {fault:?}"));
        let connection = self.processes[number].connection.clone();
        let faults = self.processes[number].coordinator.as_ref().map(|it| it.faults().clone());
        let Some(faults) = faults else { return };
        let show = |time: Duration| self.history.disturb(None, time + AFTERMATH);
        match fault {
            Fault::Crash => {
                self.crash(number);
                tokio::time::sleep(Duration::from_secs(2)).await;
                self.start(number).await;
            }
            Fault::CrashInCall { after } => self.processes[number].replica.crash_soon(after),
            Fault::Stop => {
                if let Some((running, _)) = self.processes[number].running.take() {
                    let unhandled = running.stop().await;
                    self.history.note(format!("{number} has stopped: {unhandled} unhandled"));
                    self.history.count("stops");
                    if unhandled > 0 {
                        self.history.disturb(None, AFTERMATH);
                    }
                }
                self.start(number).await;
            }
            Fault::Freeze(time) => {
                show(time);
                faults.freeze();
                after(time, move || faults.thaw());
            }
            Fault::LoseRequests(count) => {
                show(AFTERMATH);
                faults.lose_requests(count);
            }
            Fault::LoseReplies(count) => {
                show(AFTERMATH);
                faults.lose_replies(count);
            }
            Fault::Delay(delay, time) => {
                show(time);
                faults.delay(delay);
                after(time, move || faults.delay(Duration::ZERO));
            }
            Fault::DropPushes(time) => {
                faults.drop_pushes(true);
                after(time, move || faults.drop_pushes(false));
            }
            Fault::SlowSends(delay, time) => {
                show(time);
                connection.delay_sends(delay);
                after(time, move || connection.delay_sends(Duration::ZERO));
            }
            Fault::Interrupt(time) => {
                show(time);
                connection.interrupt();
                after(time, move || connection.restore());
            }
            Fault::Refuse(count) => {
                show(AFTERMATH);
                faults.refuse(count);
            }
            Fault::RestartHub { wiped } => {
                show(AFTERMATH);
                self.restarted = Some(Instant::now());
                self.hub.restart(wiped);
            }
            Fault::JumpHubClock(_)
                if self.restarted.is_some_and(|restart| restart.elapsed() < GRACE) => {}
            Fault::JumpHubClock(time) => {
                show(AFTERMATH);
                self.hub.jump_clock(time);
            }
        }
    }

    async fn heal(&mut self) {
        for number in 0..self.processes.len() {
            let process = &self.processes[number];
            process.replica.survives();
            process.connection.restore();
            process.connection.delay_sends(Duration::ZERO);
            if let Some(coordinator) = &process.coordinator {
                let faults = coordinator.faults();
                faults.thaw();
                faults.delay(Duration::ZERO);
                faults.drop_pushes(false);
                faults.lose_replies(0);
                faults.lose_requests(0);
                faults.refuse(0);
            } else {
                self.start(number).await;
            }
        }
    }

    /// C4, C7, S17: nobody holds or waits for a chat that nobody speaks in.
    fn nothing_is_left(&self, chats: &[ChatKey]) {
        for chat in chats {
            if self.hub.record(chat).is_some_and(|record| !record.is_idle()) {
                self.history.violation(format!("{chat} is left held or waited for"));
            }
        }
        let led = usize::from(self.plan.exclusive);
        for (number, process) in self.processes.iter().enumerate() {
            let open = process.coordinator.as_ref().map_or(0, |it| it.open_tickets());
            if open > led {
                self.history.violation(format!("{number} is left with {open} open tickets"));
            }
        }
    }

    fn crash(&mut self, number: usize) {
        self.history.note(format!("{number} crashes"));
        self.history.count("crashes");
        self.history.disturb(None, AFTERMATH);
        self.note_events(number);
        let process = &mut self.processes[number];
        if let Some(coordinator) = process.coordinator.take() {
            coordinator.crash();
        }
        drop(process.running.take());
        self.history.died(number);
    }

    async fn start(&mut self, number: usize) {
        self.note_events(number);
        let process = &mut self.processes[number];
        process.replica.reborn();
        let replica = Arc::clone(&process.replica);
        // The same id in each life: C2 says that it inherits nothing all the same.
        let id = ReplicaId::new(format!("replica-{number}")).expect("a short name");
        let inner = Arc::new(MemoryCoordinator::builder(&self.hub).replica_id(id).build());
        let watched = Watched { inner: Arc::clone(&inner), replica: Arc::clone(&replica) };
        let mut coordination = Coordination::new(watched)
            .settle(SETTLE)
            .turn_wait(Duration::from_secs(60))
            .handover(Handover::forward().fallback(Fallback::Notify));
        if let Some(Mutant::Runtime(rule)) = self.plan.mutant {
            coordination = coordination.break_rule(rule);
        }
        let store = FaultyStore { inner: self.store.clone(), replica: Arc::clone(&replica) };
        let connection =
            Connection { inner: process.connection.clone(), replica: Arc::clone(&replica) };
        let bot = Bot::new(connection).store(store).coordination(coordination);
        match define(bot, &replica).start().await {
            Ok(running) => {
                let events = running.events();
                process.running = Some((running, events));
                process.coordinator = Some(inner);
                self.history.note(format!("{number} has started"));
            }
            Err(error) => self.history.violation(format!("{number} does not start: {error}")),
        }
    }

    fn note_events(&mut self, number: usize) {
        let Some((_, events)) = &mut self.processes[number].running else { return };
        while let Ok(event) = events.try_recv() {
            match event {
                Event::Error(_) => self.history.count("errors"),
                Event::Coordination(event) => {
                    let event = format!("{event:?}");
                    for (part, name) in [
                        ("Resumed", "resumed"),
                        ("Notified", "notified"),
                        ("Settled", "settled"),
                        ("Superseded", "superseded"),
                    ] {
                        if event.contains(part) {
                            self.history.count(name);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn after(time: Duration, end: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        end();
    });
}
