//! Cases about replicas that die, freeze and come back.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Cluster, CoordinatorFixture, LEASE, SLACK, chat, leader, not_before, settings, take, within,
};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::coordination::{AcquireTurn, CoordinationError, LossReason};

/// The least that a lease lasts after its holder died, which had renewed it a third of it ago.
const LEAST: Duration = Duration::from_millis(LEASE.as_millis() as u64 * 2 / 3 - 100);

/// C4: tickets of dead replicas are skipped.
pub async fn tickets_of_a_dead_replica_are_skipped(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let _dead = b.coordinator().reserve(&key).await?;
    let ticket = c.coordinator().reserve(&key).await?;
    b.crash().await;
    fixture.pass(LEASE + SLACK).await;
    turn.release().await?;
    let next = c.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let _given = within(Duration::ZERO, "the turn behind a dead ticket", next).await??;
    Ok(())
}

/// C3: the next in line takes over from a dead holder, and not before its lease ends.
pub async fn a_dead_holder_is_replaced_when_its_lease_has_run_out(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let first = b.coordinator().reserve(&key).await?;
    let second = c.coordinator().reserve(&key).await?;
    let (crashed, fence) = (Instant::now(), turn.fence());
    a.crash().await;
    ensure!(turn.check().is_err(), "a dead process acts");
    let next = b.coordinator().acquire_turn(first, AcquireTurn::new());
    let next = within(LEASE, "the turn of a dead holder", next).await??;
    not_before(crashed, LEAST, "taken from a dead holder")?;
    ensure_eq!(next.previous_fence(), Some(fence), "the fence of the dead holder");
    next.release().await?;
    let last = c.coordinator().acquire_turn(second, AcquireTurn::new());
    let _given = within(Duration::ZERO, "the turn after that", last).await??;
    Ok(())
}

/// C4: a replica whose ticket was skipped, because it was presumed dead, gets a lost lease.
pub async fn a_replica_that_was_presumed_dead_is_told_so(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let presumed_dead = b.coordinator().reserve(&key).await?;
    let ticket = c.coordinator().reserve(&key).await?;
    if !b.freeze().await {
        return Err(CaseError::NotRun("traffic cannot be stopped"));
    }
    fixture.pass(LEASE + SLACK).await;
    turn.release().await?;
    let next = c.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let next = within(Duration::ZERO, "the turn behind a frozen ticket", next).await??;
    b.thaw().await;
    let told = b.coordinator().acquire_turn(presumed_dead, AcquireTurn::new());
    match within(LEASE, "the news of a skipped ticket", told).await? {
        Err(CoordinationError::LeaseLost { reason: LossReason::Superseded, .. }) => {}
        other => return Err(CaseError::Violation(format!("a skipped ticket: {other:?}"))),
    }
    // It comes back by itself, as another incarnation.
    let again = within(LEASE, "a new ticket", b.coordinator().reserve(&key)).await??;
    next.release().await?;
    let again = b.coordinator().acquire_turn(again, AcquireTurn::new());
    let _given = within(Duration::ZERO, "a turn after it came back", again).await??;
    Ok(())
}

/// C6: a replica that cannot renew drops its rights before they expire elsewhere.
pub async fn a_frozen_replica_drops_its_turn_before_another_has_it(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let key = chat("k")?;
    let turn = take(&*a, &key).await?;
    let guard = turn.guard();
    let ticket = b.coordinator().reserve(&key).await?;
    if !a.freeze().await {
        return Err(CaseError::NotRun("traffic cannot be stopped"));
    }
    let next = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let next = within(LEASE, "the turn of a frozen holder", next).await??;
    let lost = guard.check().map_err(|lost| lost.reason);
    ensure_eq!(lost, Err(LossReason::Expired), "the frozen holder's guard at the next grant");
    ensure_eq!(turn.lost().await.reason, LossReason::Expired, "its loss");
    drop(turn);
    a.thaw().await;
    fixture.pass(LEASE).await;
    ensure!(next.check().is_ok(), "the late release of the frozen holder ended another turn");
    ensure!(guard.check().is_err(), "a lost turn came back");
    Ok(())
}

/// C2: a restarted replica with the same id never inherits rights.
pub async fn the_same_replica_id_inherits_nothing(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [first] = cluster.replicas(["same"]).await?;
    let (key, name) = (chat("k")?, leader("l")?);
    let turn = take(&*first, &key).await?;
    let _leadership = first.coordinator().lead(&name).await?;
    let crashed = Instant::now();
    let dead = turn.incarnation().cloned();
    first.crash().await;
    let second = cluster.replica("same").await?;
    ensure_eq!(
        second.coordinator().replica_id(),
        first.coordinator().replica_id(),
        "the replica id"
    );
    ensure!(second.coordinator().incarnation() != dead, "two processes are one incarnation");
    let leads = second.coordinator().try_lead(&name).await?;
    ensure!(leads.is_none(), "a leadership was inherited");
    let next = within(LEASE, "the turn of the dead process", take(&*second, &key)).await??;
    not_before(crashed, LEAST, "taken from a dead process with the same id")?;
    ensure_eq!(next.previous_holder(), dead.as_ref(), "the previous holder");
    ensure!(!next.continues(turn.fence()), "memory of a dead process is taken for current");
    Ok(())
}

/// C5: leases that differ between replicas are each respected.
pub async fn each_lease_is_its_owners(fixture: &dyn CoordinatorFixture) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let long = cluster.replica_with("long", settings(LEASE * 3)?).await?;
    let short = cluster.replica("short").await?;
    fixture.pass(LEASE * 3).await;
    let key = chat("k")?;
    let _turn = take(&*long, &key).await?;
    let crashed = Instant::now();
    long.crash().await;
    let next = within(LEASE * 3, "the turn of a dead holder", take(&*short, &key)).await??;
    not_before(crashed, LEAST * 3, "taken from a holder with a long lease")?;
    short.crash().await;
    drop(next);
    let third = cluster.replica_with("third", settings(LEASE * 3)?).await?;
    let next = take(&*third, &key);
    let _given = within(LEASE, "the turn of a dead holder with a short lease", next).await??;
    Ok(())
}
