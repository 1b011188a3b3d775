//! Two replicas of one bot in one process: one dies in the middle of a signup, the other goes on.
//!
//! `cargo run --example replicas`, and watch. The replicas share a store and a coordinator in
//! memory, as real ones share Redis or a database (see `replicas_redis`).

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::bot::Coordination;
use botmesh_core::coordination::CoordinatorSettings;
use botmesh_core::prelude::*;
use botmesh_core::testing::{MemoryCoordinationHub, MemoryCoordinator, TestProvider};
use botmesh_core::{MemoryStore, RunningBot};
use botmesh_examples::signup::signup;

/// One replica: the same bot, with a coordinator of its own.
async fn replica(
    name: &'static str,
    connection: &TestProvider,
    store: &MemoryStore,
    coordinator: Arc<MemoryCoordinator>,
) -> Result<RunningBot, BotError> {
    let running = Bot::new(connection.clone())
        .store(store.clone())
        .coordination(Coordination::new(coordinator))
        .flow(signup())
        .start()
        .await?;
    running.on(move |event| {
        if let Event::Coordination(event) = event {
            println!("   ({name}: {event:?})");
        }
    });
    Ok(running)
}

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let hub = MemoryCoordinationHub::new();
    let store = MemoryStore::new().as_shared();
    let first = TestProvider::new();
    let second = first.another_connection();
    // A short lease, so that you need not wait long for the second replica.
    let lease = CoordinatorSettings::builder().lease(Duration::from_secs(2)).build()?;
    let coordinator = || MemoryCoordinator::builder(&hub).settings(lease.clone()).build();
    let (one, two) = (Arc::new(coordinator()), Arc::new(coordinator()));
    let running_one = replica("one", &first, &store, Arc::clone(&one)).await?;
    let running_two = replica("two", &second, &store, two).await?;

    let ana = first.chat("ana");
    let mut heard = first.listen(&ana);
    for (at, said) in [(&first, "/signup"), (&second, "Ana")] {
        println!("ana> {said}");
        at.says(&ana, said).await?;
        println!("bot> {}", heard.next_message().await.text);
    }

    println!("   (replica one takes the next message and is killed in the middle of it)");
    first.delay_sends(Duration::from_secs(60));
    first.says(&ana, "not a number").await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    one.crash();
    drop(running_one);

    println!("ana> 36");
    second.says(&ana, "36").await?;
    let waited = std::time::Instant::now();
    println!("bot> {}", heard.next_message().await.text);
    println!("   (replica two went on after {:.1} s)", waited.elapsed().as_secs_f32());
    running_two.stop().await;
    Ok(())
}
