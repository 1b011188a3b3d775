//! What the coordinator on MySQL costs, each figure beside the limit that was measured in the same
//! run.

mod bare;
pub(crate) mod server;

use std::time::Instant;

use anyhow::Result;
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};

use super::fleet::{Fleet as _, Mysql};
use super::latency::{free_chats, hand_overs, tell};
use super::report::Report;
use super::statements::Contest;
use super::{Options, connections, fail_over};
use server::PrivateServer;

/// Connections of all replicas together.
const CONNECTIONS: usize = 16;
/// Those of one of two.
const FEW: usize = 4;
const BARE: &str = "two bare statements, same driver";
const SELECT: &str = "SELECT 1 by the same driver";

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    let server = PrivateServer::start().await?;
    let fleet = Mysql { url: server.url() };
    let bare = bare::client(&server, options.messages).await?;
    let contest = Contest {
        fleet: &fleet,
        connections: CONNECTIONS,
        bare: &bare,
        limit: BARE,
        goal: "",
        server: Some(("MariaDB", server.process())),
    };
    contest.measure(options, report).await?;
    if options.throughput_only {
        return Ok(());
    }
    let first = fleet.ready(CoordinatorSettings::default(), FEW).await?;
    let second = fleet.ready(CoordinatorSettings::default(), FEW).await?;
    let mut connection = server.connection().await?;
    let mut select = async || {
        let begun = Instant::now();
        sqlx::query("SELECT 1").execute(&mut connection).await?;
        anyhow::Ok(begun.elapsed())
    };
    let [grants, selects] = free_chats(&*first, options.samples, &mut select).await?;
    tell(report, "reserve to grant, free chat", &grants, (SELECT, &selects), ["", ""]);
    // Nothing is pushed; whoever waits asks each 5 ms at first.
    let [ours, selects] = hand_overs(&*first, &*second, options.samples / 10, &mut select).await?;
    tell(report, "hand-over by poll, release to running", &ours, (SELECT, &selects), ["", ""]);
    first.stop().await?;
    second.stop().await?;
    // Of its own, so that the replicas of before, whose leases are longer, do not matter.
    let server = PrivateServer::start().await?;
    let fleet = Mysql { url: server.url() };
    fail_over::measure(&fleet, options, report).await?;
    let open = async || server.connections().await;
    let limit = ("those of the pool, and two", 2);
    connections::measure(&fleet, options.messages, limit, open, report).await
}
