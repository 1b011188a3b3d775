//! How long a chat is without a holder when its replica goes.

use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::coordination::{AcquireTurn, Coordinator as _, CoordinatorSettings};
use tokio::task::JoinSet;

use super::fleet::{CONNECTIONS, Fleet};
use super::latency::Times;
use super::{Figure, Options, Report, SHORT_LEASE, chat, take};

/// So many replicas are killed at the same time.
const AT_ONCE: usize = 8;

pub(super) async fn measure<F: Fleet>(
    fleet: &F,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut kills = Vec::new();
    while kills.len() < options.kills {
        let mut pairs = JoinSet::new();
        for number in 0..AT_ONCE.min(options.kills - kills.len()) {
            pairs.spawn(kill(fleet.clone(), number));
        }
        while let Some(took) = pairs.join_next().await {
            kills.push(took??);
        }
    }
    tell(report, "fail-over after a kill", Times::of(kills)?, SHORT_LEASE, "<= lease + 250 ms");
    let mut stops = Vec::new();
    for _ in 0..options.kills {
        stops.push(stop(fleet).await?);
    }
    let goal = Duration::from_millis(50);
    tell(report, "fail-over after a graceful stop", Times::of(stops)?, goal, "<= 50 ms");
    Ok(())
}

fn tell(report: &mut Report<'_>, what: &str, times: Times, most: Duration, goal: &'static str) {
    let name = if most == SHORT_LEASE { "the lease" } else { "the goal" };
    for (share, took, goal) in [("p50", times.p50, ""), ("p99", times.p99, goal)] {
        report.add(Figure {
            what: format!("{what}, {share}"),
            ours: took / 1e3,
            unit: "ms",
            limit: Some((name, most.as_secs_f64() * 1e3)),
            goal,
        });
    }
}

/// A replica that holds a chat falls silent as one that is killed does. How long until the next in
/// line runs.
async fn kill<F: Fleet>(fleet: F, number: usize) -> Result<Duration> {
    let settings = CoordinatorSettings::builder().lease(SHORT_LEASE).build()?;
    let (victim, heir) = (
        fleet.start(settings.clone(), CONNECTIONS).await?,
        fleet.start(settings, CONNECTIONS).await?,
    );
    let key = chat(number as u64)?;
    let turn = take(&*victim, &key).await?;
    let ticket = heir.reserve(&key).await?;
    let waiting = tokio::spawn(async move {
        let turn = heir.acquire_turn(ticket, AcquireTurn::new()).await?;
        let running = Instant::now();
        turn.release().await?;
        heir.stop().await?;
        anyhow::Ok(running)
    });
    // Newcomers take nobody for dead. Then at different moments between two heartbeats.
    let moment = SHORT_LEASE / 3 * u32::try_from(number)? / u32::try_from(AT_ONCE)?;
    tokio::time::sleep(SHORT_LEASE * 3 / 2 + moment).await;
    let killed = Instant::now();
    F::kill(&victim);
    let running = waiting.await??;
    drop(turn);
    Ok(running.saturating_duration_since(killed))
}

/// A replica that holds a chat stops. How long until the next in line runs.
async fn stop<F: Fleet>(fleet: &F) -> Result<Duration> {
    let settings = CoordinatorSettings::default;
    let (leaving, heir) =
        (fleet.start(settings(), CONNECTIONS).await?, fleet.start(settings(), CONNECTIONS).await?);
    let key = chat(0)?;
    let turn = take(&*leaving, &key).await?;
    let ticket = heir.reserve(&key).await?;
    let waiting = async {
        let turn = heir.acquire_turn(ticket, AcquireTurn::new()).await?;
        anyhow::Ok((Instant::now(), turn))
    };
    let stopping = async {
        tokio::task::yield_now().await;
        let begun = Instant::now();
        leaving.stop().await?;
        anyhow::Ok(begun)
    };
    let ((running, next), begun) = tokio::try_join!(waiting, stopping)?;
    drop(turn);
    next.release().await?;
    heir.stop().await?;
    Ok(running.saturating_duration_since(begun))
}
