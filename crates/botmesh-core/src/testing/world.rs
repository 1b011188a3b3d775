//! A bot with its users, for tests that read like a chat.

mod user;

pub use user::User;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use super::coordinator::MemoryCoordinator;
use super::hub::MemoryCoordinationHub;
use super::provider::TestProvider;
use crate::bot::{Bot, Coordination, RunningBot};
use crate::runtime::Event;
use crate::store::MemoryStore;
use user::Pulse;

/// A bot on a [`TestProvider`] and a [`MemoryStore`], which outlive it: the bot can crash and be
/// started again. Use it under paused time (`#[tokio::test(start_paused = true)]`).
///
/// ```
/// use botmesh_core::prelude::*;
/// use botmesh_core::testing::World;
///
/// fn my_bot(bot: Bot) -> Bot {
///     bot.when("hi", |ctx| async move { ctx.reply("Hello!").await })
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let world = World::new(my_bot).await;
/// let mut ana = world.user("ana");
/// ana.says("hi").await.hears("Hello!").hears_nothing();
/// # }
/// ```
pub struct World {
    platform: TestProvider,
    store: MemoryStore,
    hub: Option<MemoryCoordinationHub>,
    define: Box<dyn Fn(Bot) -> Bot>,
    coordinate: Box<dyn Fn(Coordination) -> Coordination>,
    replicas: Vec<Replica>,
}

/// One process of the bot.
struct Replica {
    connection: TestProvider,
    running: Option<(RunningBot, broadcast::Receiver<Event>)>,
    coordinator: Option<Arc<MemoryCoordinator>>,
    pulse: Pulse,
}

impl World {
    /// A world with the bot that `define` makes of a fresh definition.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn new(define: impl Fn(Bot) -> Bot + 'static) -> Self {
        Self::on(TestProvider::new(), define).await
    }

    /// Like [`new`](Self::new), on a platform that was made ready before.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn on(platform: TestProvider, define: impl Fn(Bot) -> Bot + 'static) -> Self {
        Self::begin(platform, None, 1, |coordination| coordination, define).await
    }

    /// A world with `count` replicas of the bot, which share a hub and the store.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn replicas(count: usize, define: impl Fn(Bot) -> Bot + 'static) -> Self {
        Self::coordinated(TestProvider::new(), count, |coordination| coordination, define).await
    }

    /// Like [`replicas`](Self::replicas), on a platform that was made ready before, and with the
    /// coordination that `coordinate` makes of the default one.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn coordinated(
        platform: TestProvider,
        count: usize,
        coordinate: impl Fn(Coordination) -> Coordination + 'static,
        define: impl Fn(Bot) -> Bot + 'static,
    ) -> Self {
        let hub = Some(MemoryCoordinationHub::new());
        Self::begin(platform, hub, count, coordinate, define).await
    }

    async fn begin(
        platform: TestProvider,
        hub: Option<MemoryCoordinationHub>,
        count: usize,
        coordinate: impl Fn(Coordination) -> Coordination + 'static,
        define: impl Fn(Bot) -> Bot + 'static,
    ) -> Self {
        let replica = |number| Replica {
            connection: if number == 0 { platform.clone() } else { platform.another_connection() },
            running: None,
            coordinator: None,
            pulse: Pulse::default(),
        };
        let mut world = Self {
            replicas: (0..count).map(replica).collect(),
            platform,
            store: MemoryStore::new().as_shared(),
            hub,
            define: Box::new(define),
            coordinate: Box::new(coordinate),
        };
        for number in 0..count {
            world.restart_replica(number).await;
        }
        world
    }

    /// The platform, to script its faults and read its transcript.
    #[must_use]
    pub const fn platform(&self) -> &TestProvider {
        &self.platform
    }

    /// The connection of a replica to the platform, to script its faults.
    #[must_use]
    pub fn connection(&self, replica: usize) -> &TestProvider {
        &self.replicas[replica].connection
    }

    /// The coordinator of a replica, to script its faults.
    ///
    /// # Panics
    /// When the world has no replicas, or this one does not run.
    #[must_use]
    pub fn coordinator(&self, replica: usize) -> &MemoryCoordinator {
        match &self.replicas[replica].coordinator {
            Some(coordinator) => coordinator,
            None => panic!("replica {replica} does not run or is not coordinated"),
        }
    }

    /// The store of the bot.
    #[must_use]
    pub const fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// The running bot of a replica.
    ///
    /// # Panics
    /// When it does not run.
    pub fn running(&self, replica: usize) -> &RunningBot {
        match &self.replicas[replica].running {
            Some((running, _)) => running,
            None => panic!("replica {replica} does not run"),
        }
    }

    /// The person with this name, who writes to the first replica until told otherwise.
    #[must_use]
    pub fn user(&self, name: &str) -> User {
        let chat = self.platform.chat(name);
        let listener = self.platform.listen(&chat);
        User {
            connections: self.replicas.iter().map(|it| it.connection.clone()).collect(),
            on: 0,
            chat,
            listener,
            pulses: self.replicas.iter().map(|it| it.pulse.clone()).collect(),
        }
    }

    /// Ends the bot where it stands, as `kill -9` would: what it had only in memory is gone.
    pub fn crash(&mut self) {
        self.crash_replica(0);
    }

    /// Ends one replica where it stands.
    pub fn crash_replica(&mut self, replica: usize) {
        let replica = &mut self.replicas[replica];
        *replica.pulse.0.lock() = None;
        if let Some(coordinator) = replica.coordinator.take() {
            coordinator.crash();
        }
        drop(replica.running.take());
    }

    /// Stops the bot in order; returns how many messages were left unhandled.
    pub async fn stop(&mut self) -> usize {
        self.stop_replica(0).await
    }

    /// Stops one replica in order; returns how many messages were left unhandled.
    pub async fn stop_replica(&mut self, replica: usize) -> usize {
        let replica = &mut self.replicas[replica];
        *replica.pulse.0.lock() = None;
        replica.coordinator = None;
        match replica.running.take() {
            Some((running, _)) => running.stop().await,
            None => 0,
        }
    }

    /// Starts the bot again, after a crash or a stop.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn restart(&mut self) {
        self.restart_replica(0).await;
    }

    /// Starts one replica again.
    ///
    /// # Panics
    /// When the bot cannot be built.
    pub async fn restart_replica(&mut self, number: usize) {
        self.crash_replica(number);
        let connection = self.replicas[number].connection.clone();
        let mut bot = (self.define)(Bot::new(connection).store(self.store.clone()));
        let mut coordinator = None;
        if let Some(hub) = &self.hub {
            let store = self.store.clone();
            let made = Arc::new(MemoryCoordinator::builder(hub).journaling(store).build());
            bot = bot.coordination((self.coordinate)(Coordination::new(Arc::clone(&made))));
            coordinator = Some(made);
        }
        match bot.start().await {
            Ok(running) => {
                let events = running.events();
                let replica = &mut self.replicas[number];
                *replica.pulse.0.lock() = Some(running.runtime());
                replica.running = Some((running, events));
                replica.coordinator = coordinator;
            }
            Err(error) => panic!("{error}"),
        }
        // A moment, in which it connects or stands by.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Lets this much time pass, with everything that is due in it.
    pub async fn advance(&self, time: Duration) {
        // One more millisecond, the grain of the clock: what is due at the end has then begun.
        tokio::time::sleep(time + Duration::from_millis(1)).await;
        self.rests().await;
    }

    /// Waits until no replica has anything more to do.
    pub async fn rests(&self) {
        for replica in &self.replicas {
            replica.pulse.rests().await;
        }
    }

    /// The events since the last call or the last start, of one replica after the other.
    pub fn events(&mut self) -> Vec<Event> {
        let running = self.replicas.iter_mut().filter_map(|replica| replica.running.as_mut());
        running.flat_map(|(_, events)| std::iter::from_fn(|| events.try_recv().ok())).collect()
    }

    /// What failed since the last call or the last start. Other events are passed over.
    pub fn errors(&mut self) -> Vec<String> {
        let events = self.events().into_iter();
        let errors = events.filter_map(|event| match event {
            Event::Error(error) => Some(format!("{}: {}", error.during, error.error)),
            _ => None,
        });
        errors.collect()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("platform", &self.platform).finish_non_exhaustive()
    }
}
