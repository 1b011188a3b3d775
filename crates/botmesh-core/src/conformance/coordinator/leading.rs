//! Cases about leaderships.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Cluster, CoordinatorFixture, LEASE, leader, not_before, take, within};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::conformance::coordinator::chat;
use crate::coordination::{CoordinationKey, CoordinatorEvent, LossReason};
use crate::id::Fence;

/// C10: one attempt gives none while another replica leads.
pub async fn one_replica_leads_at_a_time(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let name = leader("job:report")?;
    let mut last = Fence::new(0);
    for round in 0..4 {
        let (one, other) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let led = one.coordinator().try_lead(&name).await?;
        let Some(led) = led else {
            return Err(CaseError::Violation("nobody leads, and an attempt gave none".into()));
        };
        ensure!(led.fence() > last, "fence {} after {last}", led.fence());
        last = led.fence();
        for replica in [one, other] {
            let beside = replica.coordinator().try_lead(&name).await?;
            ensure!(beside.is_none(), "two lead: {beside:?}");
        }
        match other.coordinator().try_lead(&leader("another")?).await? {
            Some(elsewhere) => elsewhere.release().await?,
            None => return Err(CaseError::Violation("leaderships of two names meet".into())),
        }
        led.release().await?;
    }
    Ok(())
}

/// C10: standbys are elected in the order in which they began.
pub async fn candidates_are_elected_in_their_order(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b, c] = cluster.replicas(["a", "b", "c"]).await?;
    let name = leader("l")?;
    let leads = a.coordinator().lead(&name).await?;
    let mut campaigns = Vec::new();
    for replica in [&b, &c] {
        let (replica, name) = (Arc::clone(replica), name.clone());
        campaigns.push(tokio::spawn(async move { replica.coordinator().lead(&name).await }));
        fixture.pass(Duration::from_millis(100)).await;
    }
    fixture.pass(LEASE * 2).await;
    ensure!(leads.check().is_ok(), "a leader that renews was replaced");
    let mut fence = leads.fence();
    leads.release().await?;
    for campaign in campaigns {
        let elected = within(Duration::ZERO, "an election", campaign).await?;
        let elected = elected.map_err(|error| CaseError::Violation(error.to_string()))??;
        ensure!(elected.fence() > fence, "fence {} after {fence}", elected.fence());
        fence = elected.fence();
        drop(elected);
    }
    Ok(())
}

/// C10: a cancelled campaign leaves nothing behind.
pub async fn a_cancelled_campaign_leaves_no_candidate(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let name = leader("l")?;
    let leads = a.coordinator().lead(&name).await?;
    let campaign = tokio::time::timeout(LEASE / 3, b.coordinator().lead(&name)).await;
    ensure!(campaign.is_err(), "two lead: {campaign:?}");
    fixture.pass(LEASE / 3).await;
    leads.release().await?;
    let again = a.coordinator().try_lead(&name).await?;
    ensure!(again.is_some(), "somebody leads without knowing it");
    Ok(())
}

/// C10: a standby leads when the lease of a dead leader has run out.
pub async fn a_dead_leader_is_replaced(fixture: &dyn CoordinatorFixture) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas(["a", "b"]).await?;
    let name = leader("provider:telegram")?;
    let leads = a.coordinator().lead(&name).await?;
    let standby = {
        let (b, name) = (Arc::clone(&b), name.clone());
        tokio::spawn(async move { b.coordinator().lead(&name).await })
    };
    fixture.pass(LEASE).await;
    let crashed = Instant::now();
    a.crash().await;
    let elected = within(LEASE, "an election after the leader's death", standby).await?;
    let elected = elected.map_err(|error| CaseError::Violation(error.to_string()))??;
    not_before(crashed, LEASE / 2, "elected after a death")?;
    ensure!(elected.fence() > leads.fence(), "the fence did not grow");
    ensure!(leads.check().is_err(), "a dead process leads");
    Ok(())
}

/// C11: leader, follower and lost leases are events.
pub async fn leaders_and_losses_are_reported(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a] = cluster.replicas(["a"]).await?;
    let (name, key) = (leader("l")?, chat("k")?);
    let mut events = a.coordinator().subscribe();
    let leads = a.coordinator().lead(&name).await?;
    let next = within(LEASE, "an event", events.recv()).await?.ok();
    let elected = CoordinatorEvent::Leader { name: name.clone(), fence: leads.fence() };
    ensure_eq!(next, Some(elected), "the event of an election");
    leads.release().await?;
    let next = within(LEASE, "an event", events.recv()).await?.ok();
    let resigned = CoordinatorEvent::Follower { name: name.clone(), reason: LossReason::Ended };
    ensure_eq!(next, Some(resigned), "the event of a resignation");

    let leads = a.coordinator().lead(&name).await?;
    let turn = take(&*a, &key).await?;
    let _elected = within(LEASE, "an event", events.recv()).await?;
    if !a.freeze().await {
        return Err(CaseError::NotRun("traffic cannot be stopped"));
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(within(LEASE, "an event", events.recv()).await?.ok());
    }
    let reason = LossReason::Expired;
    let lost = |key: CoordinationKey| Some(CoordinatorEvent::LeaseLost { key, reason });
    for wanted in [
        lost(CoordinationKey::from(&key)),
        lost(CoordinationKey::from(&name)),
        Some(CoordinatorEvent::Follower { name, reason }),
    ] {
        ensure!(seen.contains(&wanted), "{wanted:?} is missing in {seen:?}");
    }
    drop((leads, turn));
    a.thaw().await;
    Ok(())
}
