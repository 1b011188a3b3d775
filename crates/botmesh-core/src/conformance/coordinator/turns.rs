//! Cases about turns of replicas that live.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Cluster, CoordinatorFixture, LEASE, chat, joined, settings, take, within};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::coordination::{AcquireTurn, CoordinationError, CoordinatorSettings};
use crate::id::Fence;

/// C3: turns are granted in reservation order, whichever replica reserved.
pub async fn turns_are_granted_in_the_order_of_reservation(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let replicas = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let first = take(&*replicas[0], &key).await?;
    let (sender, mut granted) = mpsc::unbounded_channel();
    let mut waiting = Vec::new();
    for place in 0..12 {
        // Not in turn: two of one replica follow each other here and there.
        let replica = Arc::clone(&replicas[(place * place + place / 3) % 3]);
        let ticket = replica.coordinator().reserve(&key).await?;
        let sender = sender.clone();
        waiting.push(tokio::spawn(async move {
            let turn = replica.coordinator().acquire_turn(ticket, AcquireTurn::new()).await?;
            let _ = sender.send(place);
            tokio::task::yield_now().await;
            turn.check().map_err(|lost| CaseError::Violation(lost.to_string()))?;
            turn.release().await?;
            Ok(())
        }));
    }
    fixture.pass(Duration::from_millis(50)).await;
    ensure!(granted.try_recv().is_err(), "a turn was granted beside the first one");
    first.release().await?;
    for task in waiting {
        within(LEASE, "a turn that was released", joined(task)).await??;
    }
    drop(sender);
    let mut order = Vec::new();
    while let Some(place) = granted.recv().await {
        order.push(place);
    }
    ensure_eq!(order, (0..12).collect::<Vec<_>>(), "the order of the grants");
    Ok(())
}

/// C3: at most one replica holds a chat's turn, and C9: fences grow with each grant.
pub async fn a_chat_has_one_holder_at_a_time(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let replicas = cluster.replicas(["a", "b", "c"]).await?;
    let chats: Vec<_> = ["x", "y"]
        .into_iter()
        .map(|name| Ok((chat(name)?, Arc::new((AtomicU32::new(0), AtomicU64::new(0))))))
        .collect::<Result<_, CaseError>>()?;
    let mut working = Vec::new();
    for worker in 0..12 {
        let replica = Arc::clone(&replicas[worker % 3]);
        let (key, state) = chats[worker % 2].clone();
        working.push(tokio::spawn(async move {
            for round in 0..10 {
                let turn = take(&*replica, &key).await?;
                let beside = state.0.fetch_add(1, Ordering::SeqCst);
                ensure_eq!(beside, 0, "holders beside the new one");
                let last = state.1.swap(turn.fence().get(), Ordering::SeqCst);
                ensure!(turn.fence() > Fence::new(last), "fence {} after {last}", turn.fence());
                tokio::task::yield_now().await;
                state.0.fetch_sub(1, Ordering::SeqCst);
                if round % 2 == 0 {
                    turn.release().await?;
                }
            }
            Ok(())
        }));
    }
    for task in working {
        within(LEASE * 4, "all turns", joined(task)).await??;
    }
    Ok(())
}

/// C3: turns of different chats are independent, whatever their names look like.
pub async fn different_chats_do_not_wait_for_each_other(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "{b}|/#\n"]).await?;
    let long = "y".repeat(900);
    let names = [
        "k", "K", " k", "k ", "{k}", "{", "}", "a{b}c", "k|1|2", "a/1", "a#b", "%", "%23", "\"k\"",
        "'k'", "k\n", "k\r\n", "k\t", "k\u{0}l", "*", "k*", "[k]", "\\k", "é", "e\u{301}", "ß",
        "😀", "\u{FFFF}", "live", "t:k", "q:k", "-1", "1e3", "nil", &long,
    ];
    let mut held = Vec::new();
    for name in names {
        let turn = within(Duration::ZERO, name, take(&*a, &chat(name)?)).await??;
        held.push(turn);
    }
    for turn in held {
        let key = turn.key().clone();
        let ticket = b.coordinator().reserve(&key).await?;
        turn.release().await?;
        let next = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
        let next = within(Duration::ZERO, key.as_str(), next).await??;
        ensure_eq!(next.key(), &key, "the chat of the next turn");
        next.release().await?;
    }
    Ok(())
}

/// C5: heartbeats keep what is held.
pub async fn a_turn_that_is_renewed_is_kept_for_many_leases(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let ticket = b.coordinator().reserve(&key).await?;
    let next = {
        let b = Arc::clone(&b);
        let acquire = async move {
            let turn = b.coordinator().acquire_turn(ticket, AcquireTurn::new()).await?;
            Ok::<_, CaseError>(turn.fence())
        };
        tokio::spawn(acquire)
    };
    for _ in 0..20 {
        fixture.pass(LEASE / 4).await;
        ensure!(turn.check().is_ok(), "the turn was lost: {:?}", turn.check());
        ensure!(!next.is_finished(), "another turn was granted beside it");
    }
    let fence = turn.fence();
    turn.release().await?;
    let next = within(Duration::ZERO, "the next turn", joined(next)).await??;
    ensure!(next > fence, "fence {next} after {fence}");
    Ok(())
}

/// C8: a grant carries the previous holder and its fence.
pub async fn a_grant_tells_the_previous_holder(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    let first = take(&*a, &key).await?;
    ensure_eq!(first.previous_holder(), None, "the previous holder of a new chat");
    let fence = first.fence();
    first.release().await?;

    let again = take(&*a, &key).await?;
    ensure!(again.continues(fence), "{again:?} does not continue {fence}");
    ensure_eq!(again.previous_holder(), again.incarnation(), "the previous holder");
    let fence = again.fence();
    let ticket = b.coordinator().reserve(&key).await?;
    again.release().await?;

    let other = b.coordinator().acquire_turn(ticket, AcquireTurn::new()).await?;
    let incarnation = a.coordinator().incarnation();
    ensure_eq!(other.previous_holder(), incarnation.as_ref(), "the holder before a hand-over");
    ensure_eq!(other.previous_fence(), Some(fence), "its fence");
    ensure!(!other.continues(fence), "another replica continues");
    other.release().await?;
    let back = take(&*a, &key).await?;
    ensure!(!back.continues(fence), "a turn of another replica was forgotten");
    Ok(())
}

/// C9: fences grow after idle state was forgotten, which C8 reports as unknown.
pub async fn a_forgotten_chat_has_no_previous_holder_and_a_higher_fence(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let settings = CoordinatorSettings::builder().lease(LEASE).idle(LEASE * 2).build()?;
    let replica = cluster.replica_with("a", settings).await?;
    fixture.pass(LEASE).await;
    let key = chat("k")?;
    let mut last = Fence::new(0);
    for _ in 0..2 {
        for round in 0..3 {
            let turn = take(&*replica, &key).await?;
            ensure!(turn.fence() > last, "fence {} after {last}", turn.fence());
            let known = turn.previous_holder().is_some();
            ensure_eq!(known, round > 0, "whether the previous holder is known");
            last = turn.fence();
            turn.release().await?;
        }
        fixture.pass(LEASE * 2 + Duration::from_millis(50)).await;
    }
    Ok(())
}

/// C14: a lost wake-up costs at most one poll.
pub async fn a_lost_wake_up_costs_one_poll(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    if !b.lose_pushes().await {
        return Err(CaseError::NotRun("pushes cannot be lost"));
    }
    let turn = take(&*a, &key).await?;
    let ticket = b.coordinator().reserve(&key).await?;
    let acquire = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let release = async {
        fixture.pass(LEASE).await;
        let released = Instant::now();
        turn.release().await.map(|()| released)
    };
    let (next, released) = tokio::join!(acquire, release);
    let _given = next?;
    let after = released?.elapsed();
    // The pause before the next poll is a tenth of the wait.
    let most = LEASE / 10 + Duration::from_millis(400);
    ensure!(after <= most, "granted {after:?} after the release");
    Ok(())
}

/// C15: an uncontended message costs two round trips.
pub async fn a_free_turn_costs_two_round_trips(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    // So long a lease that no heartbeat is counted.
    let replica = cluster.replica_with("a", settings(Duration::from_secs(600))?).await?;
    // A backend that was just made may pause grants for as long.
    let ready = within(Duration::from_secs(2), "a turn", take(&*replica, &chat("k")?)).await;
    let Ok(ready) = ready else {
        return Err(CaseError::NotRun("the backend pauses grants"));
    };
    ready?.release().await?;
    let Some(before) = fixture.operations(&cluster.prefix).await else {
        return Err(CaseError::NotRun("operations are not counted"));
    };
    for message in 0..20 {
        let turn = take(&*replica, &chat(&format!("k{}", message % 3))?).await?;
        turn.release().await?;
    }
    let after = fixture.operations(&cluster.prefix).await.unwrap_or_default();
    ensure_eq!(after - before, 40, "operations for 20 messages");
    Ok(())
}

/// C4: a queue that is full is told as such, and has room again when a ticket has left it.
pub async fn a_full_queue_is_an_error(fixture: &dyn CoordinatorFixture) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let settings = CoordinatorSettings::builder().lease(LEASE).max_queue(2).build()?;
    let replica = cluster.replica_with("a", settings).await?;
    fixture.pass(LEASE).await;
    let key = chat("k")?;
    let turn = take(&*replica, &key).await?;
    let coordinator = replica.coordinator();
    let first = coordinator.reserve(&key).await?;
    let _second = coordinator.reserve(&key).await?;
    match coordinator.reserve(&key).await {
        Err(error @ CoordinationError::Full { waiting: 2, .. }) => {
            ensure!(error.is_unavailable(), "a full queue counts as unavailable");
        }
        other => return Err(CaseError::Violation(format!("a third ticket waits: {other:?}"))),
    }
    turn.release().await?;
    let _first = coordinator.acquire_turn(first, AcquireTurn::new()).await?;
    let _given = coordinator.reserve(&key).await?;
    Ok(())
}
