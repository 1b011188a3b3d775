//! Cases about the fences of checkpoints.

use super::case::{ensure, ensure_eq, eventually};
use super::store::{Space, applied, at_once, body, chat, conditional};
use super::{CaseError, StoreFixture};
use crate::id::{Fence, Revision};
use crate::store::{Adopted, CheckpointWrite, ConditionalCheckpointStore, StoredCheckpoint, Swap};
use crate::{ChatKey, store::Store};

const LOW: Fence = Fence::new(10);
const HIGH: Fence = Fence::new(20);

/// All that a stale writer may try; each must be refused.
async fn refuses_low(
    conditional: &dyn ConditionalCheckpointStore,
    key: &ChatKey,
    present: Option<Revision>,
    when: &str,
) -> Result<(), CaseError> {
    for expected in [None, present] {
        let swap = conditional.set_checkpoint_if(key, body("stale"), expected, LOW).await?;
        ensure_eq!(swap, Swap::Refused, "a write from {expected:?} below the fence {when}");
    }
    if let Some(present) = present {
        let swap = conditional.clear_checkpoint_if(key, present, LOW).await?;
        ensure_eq!(swap, Swap::Refused, "clearing below the fence {when}");
    }
    Ok(())
}

/// B2: once a higher fence has written, a lower one is refused even if it names the revision.
pub async fn a_lower_fence_is_refused_after_a_write(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let key = chat("a")?;
    let swap = conditional.set_checkpoint_if(&key, body("1"), None, LOW).await?;
    let first = applied(swap, "the first write")?;
    let swap = conditional.set_checkpoint_if(&key, body("2"), Some(first), HIGH).await?;
    let second = applied(swap, "a write with a higher fence")?;
    refuses_low(conditional, &key, Some(second), "of a conditional write").await?;

    let key = chat("b")?;
    let revision = store.set_checkpoint(&key, body("1"), HIGH).await?;
    refuses_low(conditional, &key, Some(revision), "of an unconditional write").await?;
    // Who may write whatever is there still does not lower the fence.
    let revision = store.set_checkpoint(&key, body("2"), LOW).await?;
    let read = store.load_checkpoint(&key).await?.map(|row| (row.revision, row.fence));
    ensure_eq!(read, Some((revision, HIGH)), "an unconditional write with a lower fence");
    refuses_low(conditional, &key, Some(revision), "after that").await
}

/// B2: adopting a row fences off all former holders and changes nothing else.
pub async fn a_lower_fence_is_refused_after_adoption(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let key = chat("a")?;
    let swap = conditional.set_checkpoint_if(&key, body("1"), None, LOW).await?;
    let revision = applied(swap, "the first write")?;
    let row = |fence| StoredCheckpoint { revision, fence, body: "1".into(), wake_in: None };

    let adopted = conditional.adopt_checkpoint(&key, HIGH).await?;
    let wanted = Adopted { checkpoint: Some(row(HIGH)), previous_fence: Some(LOW) };
    ensure_eq!(adopted, wanted, "adopting with a higher fence");
    ensure_eq!(store.load_checkpoint(&key).await?, Some(row(HIGH)), "after adoption");
    refuses_low(conditional, &key, Some(revision), "of an adoption").await?;

    let adopted = conditional.adopt_checkpoint(&key, LOW).await?;
    let wanted = Adopted { checkpoint: Some(row(HIGH)), previous_fence: Some(HIGH) };
    ensure_eq!(adopted, wanted, "adopting with a lower fence");
    refuses_low(conditional, &key, Some(revision), "of the first adoption").await?;

    let swap = conditional.set_checkpoint_if(&key, body("2"), Some(revision), HIGH).await?;
    applied(swap, "a write of the one who adopted").map(drop)
}

/// B2: adopting where there is no row fences off former holders too.
pub async fn a_lower_fence_is_refused_after_adoption_of_no_row(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let key = chat("a")?;
    let adopted = conditional.adopt_checkpoint(&key, HIGH).await?;
    let wanted = Adopted { checkpoint: None, previous_fence: None };
    ensure_eq!(adopted, wanted, "adopting an unknown chat");
    ensure_eq!(store.load_checkpoint(&key).await?, None, "after adopting no row");
    refuses_low(conditional, &key, None, "of an adoption without a row").await?;
    let adopted = conditional.adopt_checkpoint(&key, LOW).await?;
    let wanted = Adopted { checkpoint: None, previous_fence: Some(HIGH) };
    ensure_eq!(adopted, wanted, "adopting with a lower fence");
    let swap = conditional.set_checkpoint_if(&key, body("1"), None, HIGH).await?;
    applied(swap, "the first write of the one who adopted").map(drop)
}

/// B2: the absent-row attack: after a higher fence wrote and cleared, a stale writer that
/// expects no row cannot make it anew.
pub async fn a_stale_writer_cannot_make_a_cleared_row_anew(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let key = chat("a")?;
    let swap = conditional.set_checkpoint_if(&key, body("1"), None, HIGH).await?;
    let revision = applied(swap, "the first write")?;
    let swap = conditional.clear_checkpoint_if(&key, revision, HIGH).await?;
    applied(swap, "clearing")?;
    refuses_low(conditional, &key, Some(revision), "of clearing").await?;
    ensure_eq!(store.load_checkpoint(&key).await?, None, "after the attack");
    let adopted = conditional.adopt_checkpoint(&key, LOW).await?;
    let wanted = Adopted { checkpoint: None, previous_fence: Some(HIGH) };
    ensure_eq!(adopted, wanted, "adopting a cleared row");
    let swap = conditional.set_checkpoint_if(&key, body("2"), None, HIGH).await?;
    applied(swap, "a new row with an equal fence")?;

    let key = chat("b")?;
    let adopted = conditional.adopt_checkpoint(&key, LOW).await?;
    ensure_eq!(adopted.previous_fence, None, "a chat that nobody wrote");
    store.set_checkpoint(&key, body("1"), HIGH).await?;
    store.clear_checkpoint(&key).await?;
    refuses_low(conditional, &key, None, "of unconditional clearing").await?;
    store.clear_checkpoint(&key).await?;
    refuses_low(conditional, &key, None, "of clearing twice").await
}

/// B2: the fence of an expired row is remembered as well.
pub async fn a_stale_writer_cannot_make_an_expired_row_anew(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let key = chat("a")?;
    let soon = Some(std::time::Duration::from_millis(50));
    let write = CheckpointWrite { expires_in: soon, ..body("1") };
    let revision = store.set_checkpoint(&key, write, HIGH).await?;
    eventually(fixture, "the row expires", async || {
        Ok(store.load_checkpoint(&key).await?.is_none())
    })
    .await?;
    refuses_low(conditional, &key, Some(revision), "of an expired row").await?;
    let swap = conditional.set_checkpoint_if(&key, body("2"), Some(revision), HIGH).await?;
    ensure_eq!(swap, Swap::Refused, "a write to the revision of an expired row");
    let swap = conditional.clear_checkpoint_if(&key, revision, HIGH).await?;
    ensure_eq!(swap, Swap::Refused, "clearing an expired row");
    let adopted = conditional.adopt_checkpoint(&key, HIGH).await?;
    let wanted = Adopted { checkpoint: None, previous_fence: Some(HIGH) };
    ensure_eq!(adopted, wanted, "adopting an expired row");
    let swap = conditional.set_checkpoint_if(&key, body("3"), None, HIGH).await?;
    let anew = applied(swap, "a new row in the place of an expired one")?;
    ensure!(anew != revision, "revision {revision} came again");
    let read = store.load_checkpoint(&key).await?.map(|row| row.body);
    ensure_eq!(read, Some("3".to_owned()), "the new row, which does not expire");
    Ok(())
}

/// B2: whatever a stale writer does while another adopts: the one who adopted has seen it, or it
/// was refused.
pub async fn a_write_never_slips_past_an_adoption(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?];
    conditional(&*handles[0])?;
    for round in 0..15 {
        let key = chat(&format!("chat {round}"))?;
        let first = handles[0].set_checkpoint(&key, body("first"), LOW).await?;
        let racers = at_once(&handles, 2, |store: std::sync::Arc<dyn Store>, task| {
            let key = key.clone();
            async move {
                let Some(conditional) = store.conditional_checkpoints() else {
                    return Ok((None, None));
                };
                if task == round % 2 {
                    let adopted = conditional.adopt_checkpoint(&key, HIGH).await?;
                    return Ok((adopted.checkpoint.map(|row| row.revision), None));
                }
                let write = body("stale");
                let swap = conditional.set_checkpoint_if(&key, write, Some(first), LOW).await?;
                Ok((None, Some(swap)))
            }
        });
        let results = racers.await?;
        let seen = results.iter().find_map(|(seen, _)| *seen);
        let wanted = match results.iter().find_map(|(_, swap)| *swap) {
            Some(Swap::Applied(second)) => second,
            _ => first,
        };
        ensure_eq!(seen, Some(wanted), "the revision that the one who adopted has seen");
        let read = handles[1].load_checkpoint(&key).await?.map(|row| (row.revision, row.fence));
        ensure_eq!(read, Some((wanted, HIGH)), "the row after the race");
    }
    Ok(())
}
