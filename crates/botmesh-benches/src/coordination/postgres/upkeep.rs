//! What chats take at the server, and what holding them costs: rows, processor, connections.

use std::time::Duration;

use anyhow::{Result, ensure};
use botmesh_core::coordination::{ChatTurn, Coordinator as _, CoordinatorSettings};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::fleet;
use super::server::PrivateServer;
use crate::coordination::fleet::{CONNECTIONS, Fleet as _};
use crate::coordination::processor::Processor;
use crate::coordination::report::Report;
use crate::coordination::{Figure, Options, SHORT_LEASE, connections, take_all};

/// So many turns are released at the same time.
const AT_ONCE: usize = 256;

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    for held in [10, options.held] {
        let server = PrivateServer::start().await?;
        hold(&server, held, options.watched, report).await?;
    }
    const OPEN: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'botmesh%'";
    let server = PrivateServer::start().await?;
    let mut connection = server.connection().await?;
    let open = async || number(&mut connection, OPEN).await;
    let limit = ("those of the pool, and two", 2);
    connections::measure(&fleet(&server), options.messages, limit, open, report).await
}

async fn number(connection: &mut PgConnection, query: &str) -> Result<i64> {
    Ok(sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(connection).await?)
}

async fn hold(
    server: &PrivateServer,
    held: u64,
    watched: Duration,
    report: &mut Report<'_>,
) -> Result<()> {
    const SIZE: &str = "SELECT pg_total_relation_size('bench_coordination_turns')";
    const WRITTEN: &str = "SELECT CAST(sum(n_tup_ins + n_tup_upd + n_tup_del) AS BIGINT)
        FROM pg_stat_user_tables WHERE relname LIKE 'bench_coordination%'";
    let mut connection = server.connection().await?;
    let settings = CoordinatorSettings::builder().lease(SHORT_LEASE).build()?;
    let replica = fleet(server).ready(settings, CONNECTIONS).await?;
    connection.execute("VACUUM FULL bench_coordination_turns").await?;
    let before = number(&mut connection, SIZE).await?;
    let turns = take_all(&replica, held).await?;
    let after = number(&mut connection, SIZE).await?;
    if held >= 100 {
        report.add(Figure {
            what: format!("room of each held chat, {held} chats"),
            ours: (after - before) as f64 / held as f64,
            unit: "bytes",
            limit: None,
            goal: "",
        });
    }
    // What connections have counted is told within a second of their next statement, and within
    // ten when there is none.
    let told = Duration::from_secs(11);
    tokio::time::sleep(told).await;
    let before = number(&mut connection, WRITTEN).await?;
    let processor = Processor::read(Some(server.process()))?;
    tokio::time::sleep(watched.max(told)).await;
    let seconds = watched.max(told).as_secs_f64();
    let spent = Processor::read(Some(server.process()))?.of_each(processor, 1)[0];
    let written = number(&mut connection, WRITTEN).await? - before;
    report.add(Figure {
        what: format!("rows written for {held} held chats, lease of 1 s"),
        ours: written as f64 / seconds,
        unit: "/s",
        limit: Some(("two rows each third of it", 6.0 / SHORT_LEASE.as_secs_f64())),
        goal: "",
    });
    report.add(Figure {
        what: format!("  processor of PostgreSQL, {held} held chats"),
        ours: spent / seconds,
        unit: "us/s",
        limit: None,
        goal: "",
    });
    let lost = turns.iter().filter(|turn| turn.check().is_err()).count();
    ensure!(lost == 0, "{lost} of {held} chats were lost while nothing happened");
    let releases = turns.into_iter().map(ChatTurn::release);
    stream::iter(releases).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    replica.stop().await?;
    Ok(())
}
