//! Cases about the times of checkpoints, told by the backend's clock.

use std::time::Duration;

use tokio::time::Instant;

use super::case::{GRAIN, ensure, ensure_eq, eventually};
use super::store::{Space, body, chat};
use super::{CaseError, StoreFixture};
use crate::id::Fence;
use crate::store::CheckpointWrite;

const FENCE: Fence = Fence::new(1);
const SHORT: Duration = Duration::from_millis(300);
const HOUR: Duration = Duration::from_secs(3600);

/// B4: a checkpoint is there until its time has passed, and then counts as absent.
pub async fn a_checkpoint_lasts_as_long_as_it_was_told(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let (short, long, forever) = (chat("short")?, chat("long")?, chat("forever")?);
    store.set_checkpoint(&forever, body("text"), FENCE).await?;
    for (key, time) in [(&long, HOUR), (&chat("ages")?, Duration::MAX)] {
        let write = CheckpointWrite { expires_in: Some(time), ..body("text") };
        store.set_checkpoint(key, write, FENCE).await?;
        ensure!(store.load_checkpoint(key).await?.is_some(), "gone at once: {time:?}");
    }
    let write =
        CheckpointWrite { body: "text", wake_in: Some(Duration::ZERO), expires_in: Some(SHORT) };
    let started = Instant::now();
    store.set_checkpoint(&short, write, FENCE).await?;
    eventually(fixture, "the row expires", async || {
        let gone = store.load_checkpoint(&short).await?.is_none();
        let after = started.elapsed();
        ensure!(!gone || after + GRAIN >= SHORT, "gone after {after:?}, although told {SHORT:?}");
        Ok(gone)
    })
    .await?;
    ensure_eq!(store.checkpoints_to_wake(HOUR, 9).await?, [], "an expired row to be woken");
    for key in [long, forever] {
        ensure!(store.load_checkpoint(&key).await?.is_some(), "{key} expired too early");
    }
    Ok(())
}

/// B4: a new write gives a checkpoint a new time.
pub async fn a_later_write_decides_how_long_a_checkpoint_lasts(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let (longer, gone) = (chat("longer")?, chat("gone")?);
    for key in [&longer, &gone] {
        let write = CheckpointWrite { expires_in: Some(SHORT), ..body("1") };
        store.set_checkpoint(key, write, FENCE).await?;
    }
    store.set_checkpoint(&longer, body("2"), FENCE).await?;
    eventually(fixture, "the other row expires", async || {
        Ok(store.load_checkpoint(&gone).await?.is_none())
    })
    .await?;
    let read = store.load_checkpoint(&longer).await?.map(|row| row.body);
    ensure_eq!(read, Some("2".to_owned()), "the row that was written again without an end");
    Ok(())
}

/// B4: the time until a conversation must be woken runs down to zero by the backend's clock.
pub async fn the_time_until_waking_runs_down_to_zero(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let key = chat("a")?;
    let write = CheckpointWrite { wake_in: Some(SHORT), ..body("text") };
    let started = Instant::now();
    store.set_checkpoint(&key, write, FENCE).await?;
    eventually(fixture, "the time to wake comes", async || {
        let asked = started.elapsed();
        let left = store.load_checkpoint(&key).await?.and_then(|row| row.wake_in);
        let Some(left) = left else {
            return Err(CaseError::Violation("the row or its time to wake is gone".into()));
        };
        let after = started.elapsed();
        ensure!(left <= SHORT, "{left:?} left of {SHORT:?}");
        ensure!(left + after + GRAIN >= SHORT, "{left:?} left of {SHORT:?} after {after:?}");
        ensure!(asked < SHORT * 20 || left.is_zero(), "{left:?} left after {asked:?}");
        Ok(left.is_zero())
    })
    .await?;
    store.set_checkpoint(&key, body("text"), FENCE).await?;
    let read = store.load_checkpoint(&key).await?.map(|row| row.wake_in);
    ensure_eq!(read, Some(None), "after a write without a time to wake");
    Ok(())
}

/// B1: the chats to be woken come the earliest first, within the horizon and the limit.
pub async fn chats_to_wake_come_the_earliest_first(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    // Neither the order of writing nor that of the names is the order of time.
    let told = [("c", 50), ("f", 10), ("a", 40), ("e", 0), ("b", 20), ("d", 30)];
    for (name, time) in told {
        let write = CheckpointWrite { wake_in: Some(minutes(time)), ..body("text") };
        store.set_checkpoint(&chat(name)?, write, FENCE).await?;
    }
    store.set_checkpoint(&chat("never")?, body("text"), FENCE).await?;
    let no_more = chat("no more")?;
    let write = CheckpointWrite { wake_in: Some(Duration::ZERO), ..body("text") };
    store.set_checkpoint(&no_more, write, FENCE).await?;
    store.set_checkpoint(&no_more, body("text"), FENCE).await?;
    let cleared = chat("cleared")?;
    store.set_checkpoint(&cleared, write, FENCE).await?;
    store.clear_checkpoint(&cleared).await?;

    for (horizon, limit, wanted) in [
        (Duration::ZERO, 9, "e"),
        (minutes(25), 9, "efb"),
        (minutes(45), 2, "ef"),
        (Duration::MAX, 9, "efbdac"),
        (Duration::MAX, 0, ""),
    ] {
        let found = store.checkpoints_to_wake(horizon, limit).await?;
        let names: String = found.iter().map(|(key, _)| key.chat().into_owned()).collect();
        ensure_eq!(names, wanted, "within {horizon:?}, at most {limit}");
        for (key, left) in found {
            let time = told.iter().find(|(name, _)| *name == key.chat());
            let time = minutes(time.map_or(0, |(_, time)| *time));
            ensure!(
                left <= time && left + minutes(5) >= time,
                "{key} is to be woken in {left:?}, told were {time:?}"
            );
        }
    }
    Ok(())
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}
