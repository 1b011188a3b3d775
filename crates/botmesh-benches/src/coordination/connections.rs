//! How many connections a replica with many active chats has.

use std::sync::Arc;

use anyhow::Result;
use botmesh_core::coordination::{Coordinator as _, CoordinatorSettings};
use botmesh_core::id::ChatKey;

use super::fleet::{CONNECTIONS, Fleet};
use super::report::Report;
use super::workers::coordinate;
use super::{Figure, chat};

/// So many chats are active at the same time.
const ACTIVE: u16 = 1_000;

/// Asks `open` again and again how many connections replicas have, while one is at work. The limit
/// is those of the store and so many more.
pub(super) async fn measure<F: Fleet>(
    fleet: &F,
    messages: u64,
    (limit, more): (&'static str, u8),
    mut open: impl AsyncFnMut() -> Result<i64>,
    report: &mut Report<'_>,
) -> Result<()> {
    let replica = fleet.ready(CoordinatorSettings::default(), CONNECTIONS).await?;
    let keys: Arc<[ChatKey]> = (0..u64::from(ACTIVE)).map(chat).collect::<Result<_>>()?;
    let work = [Arc::clone(&replica)];
    let working = coordinate(&work, &keys, messages, ACTIVE.into());
    tokio::pin!(working);
    let mut most = 0;
    loop {
        tokio::select! {
            done = &mut working => {
                done?;
                break;
            }
            open = open() => most = most.max(open?),
        };
    }
    most = most.max(open().await?);
    report.add(Figure {
        what: format!("connections of a replica, {ACTIVE} active chats"),
        ours: most as f64,
        unit: "",
        limit: Some((limit, CONNECTIONS as f64 + f64::from(more))),
        goal: "<= 1",
    });
    replica.stop().await?;
    Ok(())
}
