//! What replicas and chats cost while nothing happens: heartbeats, keys and bytes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use botmesh_core::coordination::{ChatTurn, Coordinator as _};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::counters::Counters;
use super::server::PrivateServer;
use super::{Figure, Options, Report, SHORT_LEASE, chat, short_lived, take, take_all};

/// So many chats are taken at the same time.
const AT_ONCE: usize = 256;

pub(super) async fn measure(options: &Options, report: &mut Report<'_>) -> Result<()> {
    for held in [10, options.held] {
        // Of its own, so that the memory of others does not count.
        let server = PrivateServer::start()?;
        hold(&server, held, options.watched, report).await?;
    }
    Ok(())
}

async fn hold(
    server: &PrivateServer,
    held: u64,
    watched: Duration,
    report: &mut Report<'_>,
) -> Result<()> {
    let mut connection = server.connection().await?;
    let replica = short_lived(&server.url()).await?;
    // What the server itself needs for its first script and client.
    take(&*replica, &chat(held)?).await?.release().await?;
    let empty = Counters::read(&mut connection).await?;
    let turns = take_all(&replica, held).await?;
    let full = Counters::read(&mut connection).await?.since(empty);
    memory(report, "held", held, full);

    let before = Counters::read(&mut connection).await?;
    let begun = Instant::now();
    tokio::time::sleep(watched).await;
    let seconds = begun.elapsed().as_secs_f64();
    let used = Counters::read(&mut connection).await?.since(before);
    let lost = turns.iter().filter(|turn| turn.check().is_err()).count();
    report.add(Figure {
        what: format!("renewing {held} held chats, lease of 1 s"),
        ours: used.scripts / seconds,
        unit: "calls/s",
        limit: Some(("a heartbeat each third of it", 3.0 / SHORT_LEASE.as_secs_f64())),
        goal: "",
    });
    report.add(Figure {
        what: format!("  processor of Redis, {held} held chats"),
        ours: used.processor / seconds,
        unit: "us/s",
        limit: None,
        goal: "",
    });
    ensure!(lost == 0, "{lost} of {held} chats were lost while nothing happened");

    let releases = turns.into_iter().map(ChatTurn::release);
    stream::iter(releases).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let idle = Counters::read(&mut connection).await?.since(empty);
    memory(report, "idle", held, idle);
    replica.stop().await?;
    Ok(())
}

fn memory(report: &mut Report<'_>, state: &str, chats: u64, counted: Counters) {
    if chats < 100 {
        return;
    }
    for (what, count, unit) in [("keys", counted.keys, "keys"), ("memory", counted.bytes, "bytes")]
    {
        report.add(Figure {
            what: format!("{what} of each {state} chat, {chats} chats"),
            ours: count / chats as f64,
            unit,
            limit: None,
            goal: "",
        });
    }
}
