//! What the coordinator on PostgreSQL costs, each figure beside the limit that was measured in the
//! same run.

mod bare;
pub(crate) mod server;
mod upkeep;

use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};
use botmesh_postgres_store::Pooler;

use super::fleet::{Fleet as _, Postgres};
use super::latency::{Times, free_chats, hand_overs, tell};
use super::report::Report;
use super::statements::Contest;
use super::{Options, fail_over, hand_over};
use bare::BareNotifier;
use server::PrivateServer;

/// Connections of all replicas together.
const CONNECTIONS: usize = 16;
/// Those of one of two.
const FEW: usize = 4;
const BARE: &str = "two bare statements, same driver";
const SELECT: &str = "SELECT 1 by the same driver";
const NOTIFY: &str = "NOTIFY between two connections";

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    let server = PrivateServer::start().await?;
    let bare = bare::client(&server, options.messages).await?;
    let contest = Contest {
        fleet: &fleet(&server),
        connections: CONNECTIONS,
        bare: &bare,
        limit: BARE,
        goal: ">= 0.8",
        server: Some(("PostgreSQL", server.process())),
    };
    contest.measure(options, report).await?;
    if options.throughput_only {
        return Ok(());
    }
    latency(&server, options, report).await?;
    // Of its own, so that the replicas of before, whose leases are longer, do not matter.
    let server = PrivateServer::start().await?;
    fail_over::measure(&fleet(&server), options, report).await?;
    upkeep::measure(options, report).await
}

fn fleet(server: &PrivateServer) -> Postgres {
    Postgres { url: server.url(), pooler: Pooler::Absent }
}

async fn latency(server: &PrivateServer, options: &Options, report: &mut Report<'_>) -> Result<()> {
    let settings = CoordinatorSettings::default;
    let first = fleet(server).ready(settings(), FEW).await?;
    let second = fleet(server).ready(settings(), FEW).await?;
    let mut connection = server.connection().await?;
    let select = async || {
        let begun = Instant::now();
        sqlx::query("SELECT 1").execute(&mut connection).await?;
        Ok(begun.elapsed())
    };
    let [grants, selects] = free_chats(&*first, options.samples, select).await?;
    tell(report, "reserve to grant, free chat", &grants, (SELECT, &selects), ["", ""]);

    let mut bare = BareNotifier::open(server).await?;
    let notify = async || bare.notify().await;
    let [ours, notified] = hand_overs(&*first, &*second, options.samples, notify).await?;
    let goals = ["p50 <= 2 ms", ""];
    tell(report, "hand-over by NOTIFY, release to running", &ours, (NOTIFY, &notified), goals);
    second.stop().await?;

    // As through a pooler: statements are not prepared, and nothing is listened to.
    let settings = CoordinatorSettings::builder().max_poll(Duration::from_millis(5)).build()?;
    let polling = Postgres { pooler: Pooler::Present, ..fleet(server) };
    let polling = polling.ready(settings, FEW).await?;
    let mut times = Vec::new();
    for _ in 0..options.samples / 10 {
        times.push(hand_over(&*first, &*polling).await?);
    }
    let times = Times::of(times)?;
    tell(report, "hand-over by poll each 5 ms", &times, (NOTIFY, &notified), ["", ""]);
    polling.stop().await?;
    first.stop().await?;
    Ok(())
}
