//! Cases about what is given up: cancelled, timed out, dropped, released, stopped.

use std::time::Duration;

use super::{Cluster, CoordinatorFixture, LEASE, Replica, chat, leader, take, within};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::coordination::{AcquireTurn, CoordinationError, LossReason};
use crate::id::ChatKey;

/// Checks that whoever comes next is granted the turn when `replica` gives up `turn`.
async fn is_next(
    replica: &dyn Replica,
    key: &ChatKey,
    turn: crate::coordination::ChatTurn,
) -> Result<(), CaseError> {
    let ticket = replica.coordinator().reserve(key).await?;
    turn.release().await?;
    let next = replica.coordinator().acquire_turn(ticket, AcquireTurn::new());
    // The holder of a ticket that was left behind lives, so nobody would skip it.
    let _given =
        within(Duration::ZERO, "the turn behind a ticket that was given up", next).await??;
    Ok(())
}

/// C4: a cancelled wait leaves no ticket behind.
pub async fn a_cancelled_wait_leaves_no_ticket(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    for wait in [Duration::ZERO, Duration::from_millis(30), LEASE] {
        let ticket = b.coordinator().reserve(&key).await?;
        let acquire = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
        let cancelled = tokio::time::timeout(wait, acquire).await;
        ensure!(cancelled.is_err(), "granted beside its holder: {cancelled:?}");
    }
    // A reservation whose future is dropped before or after it was sent.
    let unsent = b.coordinator().reserve(&key);
    drop(unsent);
    let _ = tokio::time::timeout(Duration::ZERO, b.coordinator().reserve(&key)).await;
    fixture.pass(LEASE / 3).await;
    is_next(&*c, &key, turn).await
}

/// C4: a wait that times out is told as such, and leaves no ticket behind.
pub async fn a_wait_that_times_out_leaves_no_ticket(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let ticket = b.coordinator().reserve(&key).await?;
    let options = AcquireTurn::new().with_wait(Duration::from_millis(200));
    match b.coordinator().acquire_turn(ticket, options).await {
        Err(error @ CoordinationError::TimedOut { .. }) => {
            ensure!(error.is_unavailable(), "a wait that timed out counts as unavailable");
        }
        other => return Err(CaseError::Violation(format!("not timed out: {other:?}"))),
    }
    fixture.pass(LEASE / 3).await;
    is_next(&*c, &key, turn).await
}

/// C4: a dropped ticket gives up its place, whether it was granted meanwhile or not.
pub async fn a_dropped_ticket_gives_up_its_place(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let waiting = b.coordinator().reserve(&key).await?;
    let granted = b.coordinator().reserve(&key).await?;
    drop(waiting);
    fixture.pass(LEASE / 3).await;
    turn.release().await?;
    fixture.pass(LEASE / 3).await;
    let ticket = c.coordinator().reserve(&key).await?;
    drop(granted);
    let turn = c.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let _given = within(Duration::ZERO, "the turn behind a granted ticket", turn).await??;
    Ok(())
}

/// C7: a turn whose guard is dropped goes to the next.
pub async fn a_dropped_turn_is_released(fixture: &dyn CoordinatorFixture) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let guard = turn.guard();
    let ticket = b.coordinator().reserve(&key).await?;
    drop(turn);
    ensure!(guard.check().is_err(), "a guard of a dropped turn allows effects");
    let next = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let _given = within(Duration::ZERO, "the turn after a dropped one", next).await??;
    Ok(())
}

/// C7: a release that fails on the network is repaired within a third of the lease.
pub async fn a_release_that_failed_is_repaired(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let ticket = b.coordinator().reserve(&key).await?;
    if !a.freeze().await {
        return Err(CaseError::NotRun("traffic cannot be stopped"));
    }
    drop(turn);
    fixture.pass(LEASE / 4).await;
    a.thaw().await;
    let next = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let _given = within(LEASE / 3, "the turn after a repaired release", next).await??;
    Ok(())
}

/// C1: start and stop are idempotent, and a stop releases all.
pub async fn a_stop_releases_everything_at_once(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let (held, waited, name) = (chat("held")?, chat("waited")?, leader("l")?);
    a.coordinator().start().await?;
    let turn = take(&*a, &held).await?;
    let leadership = a.coordinator().lead(&name).await?;
    let others = take(&*b, &waited).await?;
    let ticket = a.coordinator().reserve(&waited).await?;
    let waiting = a.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let before = a.coordinator().incarnation();

    let stop = async {
        fixture.pass(Duration::from_millis(50)).await;
        a.coordinator().stop().await
    };
    let (waiting, stopped) = tokio::join!(waiting, stop);
    stopped?;
    ensure!(matches!(waiting, Err(CoordinationError::Stopped)), "a wait goes on: {waiting:?}");
    let reason = turn.check().map_err(|lost| lost.reason);
    ensure_eq!(reason, Err(LossReason::Stopped), "a turn of a stopped coordinator");
    ensure!(leadership.check().is_err(), "a leadership goes on");

    let next = within(Duration::ZERO, "a turn after the stop", take(&*b, &held)).await??;
    let next_leader = b.coordinator().lead(&name);
    let _given = within(Duration::ZERO, "a leadership after the stop", next_leader).await??;
    drop((turn, leadership));
    a.coordinator().stop().await?;
    let refused = a.coordinator().reserve(&held).await;
    ensure!(matches!(refused, Err(CoordinationError::Stopped)), "reserved: {refused:?}");

    a.coordinator().start().await?;
    let after = a.coordinator().incarnation();
    ensure!(after.is_some() && after != before, "started again as {after:?}");
    let ticket = a.coordinator().reserve(&held).await?;
    next.release().await?;
    let again = a.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let _given = within(Duration::ZERO, "a turn after the second start", again).await??;
    drop(others);
    Ok(())
}

/// C1: a ticket is acquired where it was reserved.
pub async fn a_ticket_of_another_coordinator_is_refused(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let ticket = a.coordinator().reserve(&chat("k")?).await?;
    let refused = b.coordinator().acquire_turn(ticket, AcquireTurn::new()).await;
    let foreign = matches!(refused, Err(CoordinationError::ForeignTicket { .. }));
    ensure!(foreign, "a foreign ticket: {refused:?}");
    Ok(())
}
